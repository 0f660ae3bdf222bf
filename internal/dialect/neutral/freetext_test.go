package neutral

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestFreeText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, text string }{
		{`{"input":"a\nb"}`, "a\nb"},
		{` { "input" : "a" } `, "a"},
		{`{"input":""}`, ""},
		{`{}`, ""},
		{``, ""},
		{`{"why":"} ,\"","n":[1,{"a":2}],"input":"x","more":true}`, "x"},
		{`{"input":"\ud83d\ude00\u00e9\/\b\f\r\t\\\""}`, "😀é/\b\f\r\t\\\""},
		{`{"input":"\ud83d!\ud83d\ud83d\ude00\ud83d"}`, "\ufffd!\ufffd😀\ufffd"},
		{`{"input":"\ude00"}`, "\ufffd"},
		{`{"input":"line
end and \d+"}`, "line\nend and \\d+"},
		{`{"input":"\uZZZZ"}`, `\uZZZZ`},
		{`{"input":"cut \u00`, `cut \u00`},
		{`{"input":["ls","-l"]}`, `["ls","-l"]`},
		{`{"input":null}`, ""},
		{`{"patch":"the only one"}`, "the only one"},
		{`{"patch":"one","of":"two"}`, `{"patch":"one","of":"two"}`},
		{`"a text\n"`, "a text\n"},
		{"*** Begin Patch\n{", "*** Begin Patch\n{"},
		{`{"pad":"` + strings.Repeat("x", 2*maxSeeking) + `","input":"late"}`, "late"},
	} {
		call := Call{Arguments: c.args}
		if got := call.Free(); got != c.text {
			t.Errorf("%.80s: got %q, want %q", c.args, got, c.text)
		}
		var f FreeText
		got := ""
		for i := range len(c.args) {
			if c.args[i] < utf8.RuneSelf {
				got += f.Add(c.args[i : i+1])
			} else { // fragments are whole characters
				got += f.Add(c.args[i:])
				break
			}
		}
		if got += f.End(); got != c.text {
			t.Errorf("%.80s: byte by byte got %q, want %q", c.args, got, c.text)
		}
	}
}

func TestFreeTextIsWhole(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{`{"input":"a"`: true, `{"input":"a`: false, `{"input":"a\"`: false, `{"inp`: false, `{"patch":"a"}`: true, ``: false} {
		var f FreeText
		f.Add(args)
		if f.Whole() != want {
			t.Errorf("%s: whole is %v", args, !want)
		}
	}
}

// TestFreeTextSurvives: whatever JSON writes the text, and wherever its fragments are cut, the
// text that comes out is the same, all of it before the end.
func TestFreeTextSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		args := FreeArguments(text)
		if rapid.Bool().Draw(t, "escaped") {
			raw, _ := json.Marshal(text)
			args = `{"a":{"input":"no"},"input":` + ascii(string(raw)) + `}`
		}
		var f FreeText
		got := ""
		for rest := []rune(args); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			got += f.Add(string(rest[:n]))
			rest = rest[n:]
		}
		if !f.Whole() || got != text || f.End() != "" {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// ascii writes every other character as an escape, as many services do.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16Of(r) {
			b.WriteString(`\u` + hex4(u))
		}
	}
	return b.String()
}

func utf16Of(r rune) []rune {
	if r < 0x10000 {
		return []rune{r}
	}
	r -= 0x10000
	return []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
}

func hex4(r rune) string {
	const digits = "0123456789aBcDeF"
	return string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}

// FuzzFreeText: cutting never changes the text, and a text in valid arguments is what JSON says.
func FuzzFreeText(f *testing.F) {
	f.Add(`{"input":"a\u00e9\ud83d\ude00"}`, uint(9))
	f.Add(`{"x":[",}"],"input":"\q"}`, uint(3))
	f.Fuzz(func(t *testing.T, args string, at uint) {
		whole := (&Call{Arguments: args}).Free()
		var cut FreeText
		k := int(at % uint(len(args)+1))
		if got := cut.Add(args[:k]) + cut.Add(args[k:]) + cut.End(); got != whole {
			t.Fatalf("%q cut at %d: %q, not %q", args, k, got, whole)
		}
		var said struct{ Input *string }
		if !utf8.ValidString(args) || strings.Count(strings.ToLower(args), "input") != 1 || !strings.Contains(args, `"input"`) || json.Unmarshal([]byte(args), &said) != nil || said.Input == nil {
			return
		}
		if whole != *said.Input {
			t.Fatalf("%q: %q, not %q", args, whole, *said.Input)
		}
	})
}
