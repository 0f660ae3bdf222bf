package jsonscan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestEscapedText draws strings that are full of escapes, whole and broken, around the lengths at
// which blocks begin and end, and compares with encoding/json.
func TestEscapedText(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{`\"`, `\\`, `\n`, `\/`, `\u00e9`, `\ud83d\ude00`, "a", "words of text, ", "é", "日本語", strings.Repeat("x", 61),
		strings.Repeat(`\\`, 33), strings.Repeat(`\n`, 32), strings.Repeat("y", 200), "\x7f", "\x80\xff"})
	broken := rapid.SampledFrom([]string{`\x`, `\u12g4`, "\n", "\x00", "\x1f", `\`, `"`, `\"\`, `\u`, `" `})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
		if rapid.IntRange(0, 2).Draw(t, "broken") == 0 {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = text[:at] + broken.Draw(t, "fault") + text[at:]
		}
		text = `"` + text + `"` + rapid.SampledFrom([]string{"", " ", strings.Repeat(" ", 70), ","}).Draw(t, "after")
		s := New([]byte(text))
		raw := s.Skip()
		err := s.End()
		if valid := json.Valid([]byte(text)); valid != (err == nil) {
			t.Fatalf("%q: %v, encoding/json: %v", text, err, valid)
		}
		if err == nil && string(raw) != strings.TrimSpace(text) {
			t.Fatalf("%q: %q", text, raw)
		}
	})
}

// TestEscapesAtEveryOffset puts each kind of end at every place of a block.
func TestEscapesAtEveryOffset(t *testing.T) {
	t.Parallel()
	for n := range 150 {
		for _, tail := range []string{`\\"`, `\""`, `\\\""`, `\n\n"`, `\x"`, "\n\"", `\u00e9"`, `"`, `\`} {
			text := `"\n` + strings.Repeat("z", n) + tail + strings.Repeat(" ", 80)
			s := New([]byte(text))
			s.Skip()
			if err := s.End(); (err == nil) != json.Valid([]byte(text)) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{
		"plain":   strings.Repeat("All lights are green, said the keeper. ", 2700),
		"quotes":  strings.Repeat(`All lights are green, \"she\" said. `, 2700),
		"code":    strings.Repeat(`\tif err := s.check(at); err != nil {\n\t\treturn fmt.Errorf(\"at %d: %w\", at, err)\n\t}\n`, 1200),
		"unicode": strings.Repeat(`Alle Lampen sind gr\u00fcn, sagt der W\u00e4rter. `, 2100),
	} {
		b.Run(name, func(b *testing.B) {
			data := fmt.Appendf(nil, `"%s"`, text)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				s := New(data)
				if s.Skip() == nil {
					b.Fatal(s.Err())
				}
			}
		})
	}
}
