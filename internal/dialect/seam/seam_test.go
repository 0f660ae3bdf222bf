package seam

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// play gives a seam the pieces of a text and returns what the client gets.
func play(s Seam, pieces ...string) (fresh string, state State) {
	for _, p := range pieces {
		fresh += s.Take(p)
	}
	fresh += s.End()
	return fresh, s.State()
}

func TestRestarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sent string
		pieces     []string
		fresh      string
		state      State
	}{
		{"says it all again", "one two ", []string{"one ", "two ", "three"}, "three", Joined},
		{"in other pieces", "one two ", []string{"o", "ne two thr", "ee"}, "three", Joined},
		{"and nothing more", "one two", []string{"one two"}, "", Joined},
		{"ends before", "one two", []string{"one"}, "", Broken},
		{"is empty", "one two", nil, "", Broken},
		{"deviates at once", "one two", []string{"two"}, "", Broken},
		{"deviates at the last byte", "one two", []string{"one tw", "ö"}, "", Broken},
		{"deviates within a character", "grün", []string{"grûn"}, "", Broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if fresh, state := play(Restarted(c.sent), c.pieces...); fresh != c.fresh || state != c.state {
				t.Errorf("%q, state %v", fresh, state)
			}
		})
	}
}

func TestContinued(t *testing.T) {
	t.Parallel()
	long := "A long beginning that comes but once in what was sent, and that is over sixty-four bytes long, "
	for _, c := range []struct {
		name, sent string
		pieces     []string
		fresh      string
		state      State
	}{
		{"with the space", "one two", []string{" three"}, " three", Joined},
		{"with punctuation", "one two", []string{", three"}, ", three", Joined},
		{"a lost space, or a word that goes on", "one two", []string{"three"}, "", Broken},
		{"after an opening bracket", "f(", []string{"x)"}, "x)", Joined},
		{"in a script without spaces", "你好", []string{"世界"}, "世界", Joined},
		{"the space that was sent is written again", "one two ", []string{" three"}, "three", Joined},
		{"and in pieces", "if x:\n    ", []string{"\n", "  ", "  return"}, "return", Joined},
		{"another space", "one two ", []string{"\nthree"}, "", Broken},
		{"no space", "one two ", []string{"three"}, "", Broken},
		{"nothing", "one two", nil, "", Broken},
		{"the space alone", "one two ", []string{" "}, "", Broken},
		{"begins as the answer did", "- one\n- two\n", []string{"\n- three"}, "- three", Joined},
		{"begins as the answer did and ends there", "(a) (b)", []string{"(a)"}, "(a)", Joined},
		{"the prefix again, long enough to be known", long, []string{long + "and on"}, "and on", Joined},
		{"the same in pieces", long, strings.SplitAfter(long+"and on", " "), "and on", Joined},
		{"the prefix again, which may be new text", "one", []string{"one more"}, "", Broken},
		{"the prefix again, in a text that repeats itself", strings.Repeat("0 1 ", 40) + "0", strings.SplitAfter(strings.Repeat("0 1 ", 41), " "), "", Broken},
		{"the prefix again, then something else", long, []string{long[:70], "else"}, "", Broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if fresh, state := play(Continued(c.sent), c.pieces...); fresh != c.fresh || state != c.state {
				t.Errorf("%q, state %v", fresh, state)
			}
		})
	}
}

// FuzzSeam cuts a text anywhere and has it said again, or gone on with, in any pieces. What the
// client has then is the text or, where the seam breaks, nothing more than it had. A deviation
// anywhere in what was sent breaks the seam.
func FuzzSeam(f *testing.F) {
	f.Add("The quick brown fox jumps over the lazy dog.", uint16(11), uint8(3), uint16(5), "x")
	f.Add("grün 你好 \U0001F600\u00e9 \\ \"quoted\" / ", uint16(9), uint8(1), uint16(0), "é")
	f.Add(strings.Repeat("ab ", 60), uint16(90), uint8(7), uint16(80), "")
	f.Fuzz(func(t *testing.T, text string, at uint16, size uint8, wrong uint16, with string) {
		if !utf8.ValidString(text) || !utf8.ValidString(with) || text == "" {
			t.Skip()
		}
		cut := int(at) % (len(text) + 1)
		for !utf8.RuneStart((text + "a")[cut]) {
			cut--
		}
		sent := text[:cut]
		if sent == "" {
			t.Skip()
		}
		again := func(whole string) []string {
			var pieces []string
			for whole != "" {
				n := min(1+int(size), len(whole))
				for n < len(whole) && !utf8.RuneStart(whole[n]) {
					n++
				}
				pieces, whole = append(pieces, whole[:n]), whole[n:]
			}
			return pieces
		}
		if fresh, state := play(Restarted(sent), again(text)...); state != Joined || sent+fresh != text {
			t.Errorf("said again: %q and %q", sent, fresh)
		}
		on := text[len(Prefix(sent)):]
		if fresh, state := play(Continued(sent), again(on)...); state == Joined && sent+fresh != text {
			t.Errorf("gone on with: %q and %q", sent, fresh)
		} else if state == Broken && fresh != "" {
			t.Errorf("broken, and yet %q", fresh)
		}
		if fresh, state := play(Continued(sent), again(text)...); state == Joined && sent+fresh != text {
			t.Errorf("said again where it should go on: %q and %q", sent, fresh)
		}
		off := int(wrong) % len(sent)
		for !utf8.RuneStart(sent[off]) {
			off--
		}
		if r, n := utf8.DecodeRuneInString(sent[off:]); !strings.HasPrefix(with, string(r)) && with != "" {
			bad := sent[:off] + with + text[off+n:]
			if fresh, state := play(Restarted(sent), again(bad)...); state != Broken || fresh != "" {
				t.Errorf("%q was taken for the beginning of %q", sent, bad)
			}
		}
	})
}
