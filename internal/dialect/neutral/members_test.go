package neutral

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListReadsAsJSONDoes: the fast way and encoding/json say the same of a list, and of what is wrong with it.
func TestListReadsAsJSONDoes(t *testing.T) {
	t.Parallel()
	type thing struct {
		Name string          `json:"name"`
		Note *string         `json:"note"`
		Raw  json.RawMessage `json:"raw"`
		More int             `json:"more"`
	}
	fast := func(raw []byte, x *thing) bool {
		var inner []byte
		ok := Members(raw, func(key []byte) Member {
			switch string(key) {
			case "name":
				return Member{Text: &x.Name}
			case "note":
				return Member{Some: &x.Note}
			case "raw":
				return Member{Raw: &inner}
			}
			return Member{}
		})
		x.Raw = inner
		return ok
	}
	for _, text := range []string{
		`[]`, `[{}]`, `[null]`, `[{"name":"a\u00e9\n","note":""}, {"note":"x" , "raw": {"a":[1.0]} }]`,
		`[{"name":"a","more":3},{"more":1,"name":"b"}]`, `[{"name":null,"note":null,"raw":null}]`, `[{"Name":"case"},{"unknown":[{}],"name":"a"}]`,
		`[{"name":"a","name":"b"}]`, `[1]`, `["x"]`, `[{"name":1}]`, `[{"name":"kept","note":{}}]`, `[[{"name":"a"}]]`,
	} {
		var want []thing
		wantErr := json.Unmarshal([]byte(text), &want)
		got, err := List([]byte(text), fast)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %v, want %v", text, err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" && wantErr == nil {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}
