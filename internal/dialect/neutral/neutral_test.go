package neutral

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"omniroute/internal/dialect"
)

// steps writes the steps of some events in short: +kind opens a block, -kind closes it, and text
// stands for a fragment.
func steps(events ...Event) string {
	var s Sequence
	var list []Step
	for i := range events {
		list = s.Add(&events[i], list)
	}
	list = s.End(list)
	names := map[EventKind]string{EventText: "text", EventReasoning: "thought", EventRefusal: "refusal", EventCall: "call"}
	var b strings.Builder
	for _, st := range list {
		switch st.Kind {
		case StepOpen:
			b.WriteString("+" + names[st.Event.Kind] + st.Event.ID + "(" + st.Event.Text + ")")
		case StepDelta:
			b.WriteString(st.Event.Text + st.Event.Seal.Value)
		case StepClose:
			b.WriteString("-" + names[st.Event.Kind] + " ")
		}
	}
	return strings.TrimSpace(b.String())
}

func TestSequence(t *testing.T) {
	t.Parallel()
	text := func(s string) Event { return Event{Kind: EventText, Text: s} }
	thought := func(s string) Event { return Event{Kind: EventReasoning, Text: s} }
	call := func(i int) Event { return Event{Kind: EventCall, Index: i, ID: string(rune('A' + i))} }
	args := func(i int, s string) Event { return Event{Kind: EventArguments, Index: i, Text: s} }
	end := func(i int) Event { return Event{Kind: EventCallEnd, Index: i} }
	seal := Event{Kind: EventSeal, Seal: Seal{Origin: "x", Value: "SEAL"}}
	for name, c := range map[string]struct {
		events []Event
		want   string
	}{
		"one text":                       {[]Event{text("a"), text("b")}, "+text(a)b-text"},
		"thought, then text":             {[]Event{thought("a"), seal, text("b")}, "+thought(a)SEAL-thought +text(b)-text"},
		"two sealed thoughts":            {[]Event{thought("a"), seal, thought("b"), seal}, "+thought(a)SEAL-thought +thought(b)SEAL-thought"},
		"a seal of its own":              {[]Event{text("a"), seal, call(0), end(0)}, "+text(a)-text +thought()SEAL-thought +callA()-call"},
		"one call after another":         {[]Event{call(0), args(0, "{}"), call(1), args(1, "{}")}, "+callA(){}-call +callB(){}-call"},
		"a call that said that it ended": {[]Event{call(0), end(0), call(1), end(1)}, "+callA()-call +callB()-call"},
		"interleaved":                    {[]Event{call(0), args(0, `{"a"`), call(1), args(1, `{"b":`), args(0, `:1}`), args(1, `2}`)}, `+callA(){"a":1}-call +callB(){"b":2}-call`},
		"text before a call is whole":    {[]Event{call(0), args(0, `{`), text("x"), args(0, `}`), text("y")}, "+callA(){}-call +text(x)y-text"},
		"three at once":                  {[]Event{call(0), call(1), call(2), args(2, "{}"), args(1, "{}"), args(0, "{}")}, "+callA(){}-call +callB(){}-call +callC(){}-call"},
		"never whole":                    {[]Event{call(0), args(0, `{`), call(1), args(1, `{`)}, "+callA(){-call +callB(){-call"},
		"too late":                       {[]Event{call(0), end(0), text("x"), args(0, "{}")}, "+callA()-call +text(x)-text"},
		"nothing":                        {nil, ""},
	} {
		if got := steps(c.events...); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestSeals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Seal{Origin: rapid.SampledFrom([]string{"openai", "gemini", "anthropic", "responses"}).Draw(t, "origin"),
			Value: rapid.StringN(1, 50, 200).Draw(t, "value")}
		if strings.HasPrefix(s.Value, Wrapped) {
			return
		}
		holder := rapid.SampledFrom([]string{"gemini", "anthropic", "responses"}).Draw(t, "holder")
		s.Redacted = s.Origin != holder && rapid.Bool().Draw(t, "redacted")
		kept := s.Wrap(holder)
		if got := Unwrap(holder, kept); got != s {
			t.Fatalf("%+v came back as %+v", s, got)
		}
		if s.Origin != holder {
			if _, err := base64.StdEncoding.DecodeString(kept); err != nil || !strings.HasPrefix(kept, Wrapped) {
				t.Fatalf("%q cannot be kept as bytes", kept)
			}
		}
	})
	if (Seal{}).Wrap("x") != "" || Unwrap("x", "") != (Seal{}) || Unwrap("x", (Seal{}).WrapAny("x")).Origin != Unsealed.Origin {
		t.Error("no seal")
	}
	for _, odd := range []string{Wrapped, Wrapped + "!!!", base64.StdEncoding.EncodeToString([]byte(mark)), base64.StdEncoding.EncodeToString([]byte(mark + "x"))} {
		if got := Unwrap("gemini", odd); got != (Seal{Origin: "gemini", Value: odd}) {
			t.Errorf("%q: %+v", odd, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	rule := NameRule{Max: 8, Extra: "."}
	taken := map[string]bool{"a_b": true, "longname": true}
	for name, want := range map[string]string{"a b": "a_b_2", "longname2": "longna_2", "é": "__", "": "tool", "x.y:z": "x.y_z"} {
		if got := rule.Fit(name, taken); got != want || !rule.Fits(got) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]bool{"a.b": true, "a:b": false, "": false, "123456789": false, "A_-9": true} {
		if rule.Fits(name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
	for id, want := range map[string]string{"toolu_1-A": "toolu_1-A", "call:1/é": "call_1__", "": "", "a b": "a_b", "Z^z": "Z_z"} {
		if got := PlainID(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "{}", " \n": "{}", `{"a":1.0}`: `{"a":1.0}`, " {} ": "{}", "[1]": `{"r":"[1]"}`, "{": `{"r":"{"}`, "x": `{"r":"x"}`,
		`"{\"a\":1}"`: `{"a":1}`, `"x"`: `{"r":"\"x\""}`, `"{"`: `{"r":"\"{\""}`} {
		if got := string(Object(text, "r")); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestReasoningWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in         Reasoning
		word       string
		tokens     int64
		asked, off bool
	}{
		{Reasoning{}, "", 4096, false, false},
		{Reasoning{Effort: "none"}, "none", 4096, false, true},
		{Reasoning{Effort: "minimal"}, "minimal", 1024, true, false},
		{Reasoning{Effort: "max"}, "max", 32000, true, false},
		{Reasoning{Budget: Integer(0)}, "none", 0, false, true},
		{Reasoning{Budget: Integer(-1)}, "", -1, true, false},
		{Reasoning{Budget: Integer(2000)}, "low", 2000, true, false},
		{Reasoning{Budget: Integer(8000)}, "medium", 8000, true, false},
		{Reasoning{Budget: Integer(9000), Effort: "low"}, "low", 9000, true, false},
		{Reasoning{Adaptive: true}, "", 4096, true, false},
	} {
		if c.in.Word() != c.word || c.in.Tokens() != c.tokens || c.in.Asked() != c.asked || c.in.Off() != c.off {
			t.Errorf("%+v: %q %d %v %v", c.in, c.in.Word(), c.in.Tokens(), c.in.Asked(), c.in.Off())
		}
	}
}

func TestReadURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]Media{
		"data:image/png;base64,aWM=":             {Type: "image/png", Data: "aWM="},
		"data:image/svg+xml;charset=x;base64,aA": {Type: "image/svg+xml", Data: "aA"},
		"data:text/plain,hello":                  {URL: "data:text/plain,hello"},
		"https://a.example/b.png":                {URL: "https://a.example/b.png"},
	} {
		var got Media
		if got.ReadURL(url); got != want {
			t.Errorf("%s: %+v", url, got)
		}
	}
}

func TestDecodeRequestTellsTheField(t *testing.T) {
	t.Parallel()
	var v struct {
		A struct{ B []int }
	}
	err := DecodeRequest([]byte(`{"a":{"b":"x"}}`), &v)
	if e, ok := errors.AsType[*dialect.RequestError](err); !ok || e.Param == "" || !strings.Contains(e.Message, "must not be a JSON string") {
		t.Errorf("%v", err)
	}
	if err := Decode([]byte(`{"a":{"b":"x"}}`), &v); err != nil {
		t.Errorf("an answer is not thrown away for a detail: %v", err)
	}
}
