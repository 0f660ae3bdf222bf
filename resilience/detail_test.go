package resilience

import (
	"encoding/json"
	"reflect"
	"testing"
)

var details = []string{
	`{"rule":"text.rate_limit","failed_ms":1767607445123,"recent_ms":[1767607443123,1767607444123]}`,
	`{"quarantined":true,"credential":"0a1b"}`, `{"quarantined":false,"suspected":true,"base_ms":0}`, `{"rechecked_ms":12}`,
	`{"rule":"a\"b"}`, `{"rule":"ü"}`, `{"rule":"a\u003cb"}`, `{"reason":"because","rule":"x"}`, `{"early":3,"early_ms":5,"cycles":1}`,
	`{"run":[{"Provider":"p","Connection":"c","Model":"m","kind":"timeout","count":2}]}`, `{"moved":[{"model":"m","failed_ms":7}]}`,
	``, `{}`, `{`, `{"rule"`, `{"rule":`, `{"rule":"x"`, `{"rule":"x",}`, `{"rule":"x"}}`, ` {"rule":"x"}`, `{"rule": "x"}`, `{"rule":null}`, `{"rule":7}`, `{"RULE":"x"}`,
	`{"failed_ms":-5}`, `{"failed_ms":01}`, `{"failed_ms":1.5}`, `{"failed_ms":1e3}`, `{"failed_ms":999999999999999999}`, `{"failed_ms":9223372036854775807}`,
	`{"failed_ms":99999999999999999999}`, `{"recent_ms":[]}`, `{"recent_ms":[1,]}`, `{"recent_ms":[1 ]}`, `{"recent_ms":[1`, `{"recent_ms":[1],"recent_ms":[2,3]}`,
	`{"quarantined":truex}`, `{"quarantined":1}`, `{"rule":"a","rule":"b"}`, `[]`, `null`, `{"rule":"` + "\x00" + `"}`, `{"unknown":1}`,
}

// What is read by hand is what encoding/json reads.
func FuzzDetail(f *testing.F) {
	for _, s := range details {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseDetail(text)
		var want detail
		var wantErr error
		if text != "" {
			wantErr = json.Unmarshal([]byte(text), &want)
		}
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v %v, want %+v %v", text, got, err, want, wantErr)
		}
	})
}

// The usual details must take the short way, or a large restart takes twice its time.
func TestUsualDetailsAreReadByHand(t *testing.T) {
	t.Parallel()
	for _, d := range []detail{
		{Rule: "text.rate_limit", FailedMs: 1767607445123, RecentMs: []int64{1767607443123, 1767607444123}},
		{Rule: "code.auth", Quarantined: true, Credential: "0a1b2c"},
		{Rule: "default.5xx", BaseMs: 1000, RecheckedMs: 5, Suspected: true},
	} {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := plainDetail(string(text)); !ok || !reflect.DeepEqual(got, d) {
			t.Errorf("%s is read as %+v, %v", text, got, ok)
		}
	}
}

func TestDetailsCostTwoAllocations(t *testing.T) { //nolint:paralleltest // allocations are counted
	text := details[0]
	if n := testing.AllocsPerRun(100, func() { _, _ = plainDetail(text) }); n > 2 {
		t.Errorf("%v allocations, want those of the rule and the list", n)
	}
}
