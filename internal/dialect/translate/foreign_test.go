package translate

import "testing"

func TestWithoutForeign(t *testing.T) {
	t.Parallel()
	const foreign = `b21uaTE6Z2VtaW5pOmMybG4=`
	for name, c := range map[string]struct{ dialect, body, want string }{
		"a block": {"anthropic",
			`{"a":1.0, "messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"` + foreign + `"},{"type":"text", "text":"y"}]}]}`,
			`{"a":1.0, "messages":[{"role":"assistant","content":[{"type":"text", "text":"y"}]}]}`},
		"one of its own stays": {"anthropic",
			`{"messages":[{"content":[{"type":"thinking","signature":"EqQB"},{"type":"redacted_thinking","data":"` + foreign + `"}]}]}`,
			`{"messages":[{"content":[{"type":"thinking","signature":"EqQB"}]}]}`},
		"a turn without anything else": {"anthropic",
			`{"messages":[{"role":"user","content":"q"},{"content":[{"type":"thinking","signature":"` + foreign + `"}]}]}`,
			`{"messages":[{"role":"user","content":"q"}]}`},
		"no fixed thinking without thoughts": {"anthropic",
			`{"thinking":{"type":"enabled","budget_tokens":5},"messages":[{"content":[{"type":"thinking","signature":"` + foreign + `"},{"type":"tool_use"}]}]}`,
			`{"thinking":{"type":"disabled"},"messages":[{"content":[{"type":"tool_use"}]}]}`},
		"an item": {"responses",
			`{"input":[{"type":"reasoning","encrypted_content":"` + foreign + `"}, {"type":"function_call"}]}`,
			`{"input":[{"type":"function_call"}]}`},
		"the signature of a call": {"gemini",
			`{"contents":[{"parts":[{"functionCall":{"name":"f"},"thoughtSignature":"` + foreign + `"},{"text":"x","thought":true,"thoughtSignature":"` + foreign + `"}]}]}`,
			`{"contents":[{"parts":[{"functionCall":{"name":"f"}}]}]}`},
		"a word in a text": {"anthropic",
			`{"messages":[{"content":[{"type":"text","text":"` + foreign + `"}]}]}`,
			`{"messages":[{"content":[{"type":"text","text":"` + foreign + `"}]}]}`},
		"an input that is text": {"responses", `{"input":"` + foreign + `"}`, `{"input":"` + foreign + `"}`},
		"no place for thoughts": {"openai", `{"messages":[{"signature":"` + foreign + `"}]}`, `{"messages":[{"signature":"` + foreign + `"}]}`},
	} {
		if got := string(WithoutForeign(Dialect(c.dialect), []byte(c.body))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}
