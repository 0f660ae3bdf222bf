package translate

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

func TestContinue(t *testing.T) {
	t.Parallel()
	const text = "One \"two\"\n" // ten bytes: at least three tokens
	const chat, messages = "/v1/chat/completions", "/v1/messages"
	for _, c := range []struct {
		name, dialect, path, body string
		prefill                   neutral.Prefill
		want                      string // empty: not this one
	}{
		{"chat", "openai", chat, `{"model":"m","messages":[{"role":"user","content":"hi"}],"x":[1]}`, neutral.Prefill{},
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"One \"two\"\n"}],"x":[1]}`},
		{"a mark on the message", "openai", chat, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, neutral.Prefill{Message: `"prefix":true`},
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"One \"two\"\n","prefix":true}]}`},
		{"a mark on the request", "openai", chat, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, neutral.Prefill{Body: `"a":true,"b":false`},
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"One \"two\"\n"}],"a":true,"b":false}`},
		{"limits before and behind", "openai", chat, `{"max_tokens":10,"messages":[{"role":"user","content":"hi"}],"model":"m","max_completion_tokens":4}`, neutral.Prefill{},
			`{"max_tokens":7,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"One \"two\"\n"}],"model":"m","max_completion_tokens":1}`},
		{"nothing left of the limit", "openai", chat, `{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"hi"}]}`, neutral.Prefill{}, ""},
		{"the assistant has the last word already", "openai", chat, `{"model":"m","messages":[{"role":"assistant","content":"hi"}]}`, neutral.Prefill{}, ""},
		{"a form of output", "openai", chat, `{"model":"m","response_format":{"type":"json_object"},"messages":[{"role":"user","content":"hi"}]}`, neutral.Prefill{}, ""},
		{"thoughts", "openai", chat, `{"model":"m","reasoning_effort":"high","messages":[{"role":"user","content":"hi"}]}`, neutral.Prefill{}, ""},
		{"no thoughts", "openai", chat, `{"model":"m","reasoning_effort":"none","messages":[{"role":"user","content":"hi"}]}`, neutral.Prefill{},
			`{"model":"m","reasoning_effort":"none","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"One \"two\"\n"}]}`},
		{"two lists", "openai", chat, `{"model":"m","messages":[{"role":"user","content":"hi"}],"messages":[{"role":"user","content":"ho"}]}`, neutral.Prefill{}, ""},
		{"no list", "openai", "/v1/completions", `{"model":"m","prompt":"hi"}`, neutral.Prefill{}, ""},
		{"messages", "anthropic", messages, `{"model":"m","max_tokens":100,"messages":[ {"role":"user","content":"hi"} ]}`, neutral.Prefill{},
			`{"model":"m","max_tokens":97,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"One \"two\"\n"}]}]}`},
		{"messages with thoughts", "anthropic", messages, `{"model":"m","max_tokens":100,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"hi"}]}`, neutral.Prefill{}, ""},
		{"messages without thoughts", "anthropic", messages, `{"model":"m","max_tokens":100,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"hi"}]}`, neutral.Prefill{},
			`{"model":"m","max_tokens":97,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"One \"two\"\n"}]}]}`},
		{"responses", "responses", "/v1/responses", `{"model":"m","input":"hi"}`, neutral.Prefill{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked, err := Dialect(c.dialect).ReadRequest(c.path, []byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			made := &dialect.Request{Path: asked.Path, Body: asked.Body, Model: "m", Stream: true}
			for _, from := range []*dialect.Request{asked, made} {
				got, ok := Continue(Dialect(c.dialect), from, text, c.prefill)
				if ok != (c.want != "") {
					t.Fatalf("continued: %v", ok)
				}
				if !ok {
					continue
				}
				var have, want any
				if err := json.Unmarshal(got.Body, &have); err != nil {
					t.Fatalf("%v\n%s", err, got.Body)
				}
				if err := json.Unmarshal([]byte(c.want), &want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, have); diff != "" {
					t.Error(diff)
				}
				if got.Model != "m" || got.Path != c.path || got.Stream != from.Stream {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}
