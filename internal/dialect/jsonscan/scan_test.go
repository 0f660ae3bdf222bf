package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// valid walks the text with Skip only.
func valid(text []byte) error {
	s := New(text)
	s.Skip()
	return s.End()
}

func TestSyntax(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		at   int // -1: valid
	}{
		{`{}`, -1},
		{` [ ] `, -1},
		{`{"a":1,"b":[true,false,null,{"c":"\u00e9\n"}],"d":-0.5e+10}`, -1},
		{`"plain"`, -1},
		{`-0`, -1},
		{``, 0},
		{`{`, 1},
		{`[1,]`, 3},
		{`{"a":1,}`, 7},
		{`{"a" 1}`, 5},
		{`{"a":}`, 5},
		{`{"a":1]`, 6},
		{`[1}`, 2},
		{`{"a":1} x`, 8},
		{`{a:1}`, 1},
		{`tru`, 3},
		{`trux`, 3},
		{`01`, 1},
		{`1.`, 2},
		{`1.e5`, 2},
		{`1e`, 2},
		{`+1`, 0},
		{`"ab`, 3},
		{`"a\x"`, 2},
		{`"a\u12g4"`, 6},
		{"\"a\nb\"", 2},
		{"\"0123456789\x01\"", 11},
		{`"\`, 2},
		{`nan`, 1},
	} {
		err := valid([]byte(c.text))
		if c.at < 0 {
			if err != nil {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%s: got %v, want a syntax error", c.text, err)
			continue
		}
		if syntax.Offset != c.at {
			t.Errorf("%s: %v, want it at byte %d", c.text, err, c.at)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	nest := func(n int) []byte {
		return []byte(strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2))
	}
	if err := valid(nest(MaxDepth)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if err := valid(nest(MaxDepth + 2)); err == nil {
		t.Error("above the limit: no error")
	}
	// Millions of brackets must not cost a stack.
	if err := valid(bytes.Repeat([]byte("["), 8<<20)); err == nil {
		t.Error("millions deep: no error")
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	s := New([]byte(` { "a" : "x\"\u00e9\ud83d\ude00\ud83d" , "n": 12345678901234567890, "l":[1, -2.9,"s",{}], "\u006f":{"p":{}} , "z":null } `))
	var got []any
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "a":
			got = append(got, string(s.String()))
		case "l":
			for ok := s.Array(); ok; ok = s.More(']') {
				n, isInt := s.Int()
				got = append(got, n, isInt)
			}
		case "o":
			got = append(got, string(s.Skip()))
		default:
			got = append(got, string(key), string(s.Skip()))
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	want := []any{
		"x\"é😀\ufffd", "n", "12345678901234567890", int64(1), true, int64(-2), true,
		int64(0), false, int64(0), false, `{"p":{}}`, "z", "null",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestErrorsEndEveryLoop makes sure that a caller who checks only End terminates.
func TestErrorsEndEveryLoop(t *testing.T) {
	t.Parallel()
	text := []byte(`{"a":[1,{"b":"c"}],"d":"e"}`)
	for cut := range text {
		s := New(text[:cut])
		steps := 0
		for ok := s.Object(); ok; ok = s.More('}') {
			s.Key()
			for ok := s.Array(); ok; ok = s.More(']') {
				s.Text()
				if steps++; steps > 100 {
					t.Fatalf("cut at %d: endless", cut)
				}
			}
		}
		if s.End() == nil {
			t.Errorf("cut at %d: no error", cut)
		}
		if s.Text() != nil || s.Skip() != nil || s.Key() != nil || s.Peek() != 0 {
			t.Errorf("cut at %d: values after an error", cut)
		}
	}
}

func TestTruthy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`null`: false, `false`: false, `0`: false, `0.0`: false, `""`: false, `{}`: false, `[ ]`: false, ``: false,
		`true`: true, `1`: true, `-0.1`: true, `" "`: true, `{"a":null}`: true, `[null]`: true,
	} {
		if got := Truthy([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// FuzzAgainstEncodingJSON compares with the standard library: the same texts are valid, and
// strings and numbers read the same.
func FuzzAgainstEncodingJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,false,null,{"c":"\u00e9\n"}],"d":-0.5e+10}`, `"\ud83d\ude00\udead"`, `[[[[]]]]`, `12e400`,
		`-9223372036854775808`, `{"a":{"b":{"c":[1,2,{"d":"eeeeeeeeeeeeeeeeeeeeeeeeeee"}]}}}`, "\"\x00\"", "\"\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := valid(text)
		if want := json.Valid(text); (err == nil) != want {
			t.Fatalf("%q: %v, encoding/json says %v", text, err, want)
		}
		if err != nil {
			return
		}
		s := New(text)
		switch s.Peek() {
		case '"':
			var want string
			if json.Unmarshal(text, &want) != nil {
				t.Fatal("not a string")
			}
			if got := strings.ToValidUTF8(string(s.String()), "\ufffd"); got != strings.ToValidUTF8(want, "\ufffd") && !bytes.ContainsRune(text, '\ufffd') && bytes.Equal(bytes.ToValidUTF8(text, nil), text) {
				t.Fatalf("%q: %q, want %q", text, got, want)
			}
		case '{':
			want := map[string]json.RawMessage{}
			if json.Unmarshal(text, &want) != nil {
				t.Fatal("not an object")
			}
			n := 0
			for ok := s.Object(); ok; ok = s.More('}') {
				key := strings.ToValidUTF8(string(s.Key()), "\ufffd")
				value := s.Skip()
				if w, ok := want[key]; bytes.Equal(w, value) {
					n++
				} else if !ok && bytes.Equal(bytes.ToValidUTF8(text, nil), text) {
					t.Fatalf("%q: unknown member %q", text, key)
				}
			}
			if s.End() != nil || n < len(want) && bytes.Equal(bytes.ToValidUTF8(text, nil), text) {
				t.Fatalf("%q: %d of %d members, %v", text, n, len(want), s.Err())
			}
		default:
			var want int64
			if json.Unmarshal(text, &want) == nil && s.Peek() != 'n' {
				if got, ok := s.Int(); !ok || got != want {
					t.Fatalf("%q: %d %v, want %d", text, got, ok, want)
				}
			}
		}
	})
}

func BenchmarkSkip60KB(b *testing.B) {
	text := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`a line of text that someone wrote\n`, 1700) + `"}]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if valid(text) != nil {
			b.Fatal("invalid")
		}
	}
}
