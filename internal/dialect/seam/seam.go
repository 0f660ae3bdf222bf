package seam

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// State is how far a seam is.
type State uint8

// The states.
const (
	Pending State = iota // nothing new has come yet
	Joined               // what comes is new
	Broken               // the texts do not fit together
)

// Seam is where two texts meet: the one that a client has, and the one of another attempt.
type Seam struct {
	sent   string
	repeat bool   // the text says again what was sent
	at     int    // how much of sent has been said again
	tail   string // of a text that goes on: what of sent has to come first
	held   string // text of which it is not known yet whether it repeats or goes on
	state  State
}

// surely is how many bytes two texts have to share to be the same text.
const surely = 64

// Restarted returns the seam with a text that says everything again.
func Restarted(sent string) Seam { return Seam{sent: sent, repeat: true} }

// Continued returns the seam with a text that goes on from Prefix(sent). Some upstreams repeat the
// prefix, which is noticed where the prefix is long enough to be known again.
func Continued(sent string) Seam { return Seam{sent: sent, tail: sent[len(Prefix(sent)):]} }

// Prefix returns what a model is to go on from: the text without the white space at its end.
func Prefix(sent string) string { return strings.TrimRightFunc(sent, unicode.IsSpace) }

// State returns how far the seam is.
func (s *Seam) State() State { return s.state }

// Take takes the next piece of the other text and returns what of it is new to the client.
func (s *Seam) Take(text string) string {
	switch {
	case text == "" || s.state == Broken:
		return ""
	case s.state == Joined:
		return text
	case s.repeat:
		return s.again(text)
	}
	s.held += text
	repeats, goesOn := overlap(s.sent, s.held), overlap(s.tail, s.held)
	switch {
	case repeats && goesOn && len(s.held) < min(len(s.sent), surely):
		return "" // it may be either
	case repeats && (!goesOn || s.unlikeItself()):
		held := s.held
		s.repeat, s.held = true, ""
		return s.again(held)
	case goesOn && !repeats:
		return s.goOn()
	}
	s.state = Broken // nothing fits, or nobody can tell which of the two it is
	return ""
}

// End says that the other text is over, and returns what was held back of it. Afterwards the seam
// is Joined if the client's text is the whole text.
func (s *Seam) End() string {
	if s.state != Pending {
		return ""
	}
	if s.repeat {
		if s.at == len(s.sent) {
			s.state = Joined
		} else {
			s.state = Broken
		}
		return ""
	}
	rest := s.goOn()
	if s.state != Joined {
		// A model that has nothing to add to a beginning may as well have failed.
		s.state = Broken
	}
	return rest
}

// again compares a text with what was sent.
func (s *Seam) again(text string) string {
	n := min(len(text), len(s.sent)-s.at)
	if text[:n] != s.sent[s.at:s.at+n] {
		s.state = Broken
		return ""
	}
	if s.at += n; n < len(text) {
		s.state = Joined
	}
	return text[n:]
}

// goOn joins a text that goes on.
func (s *Seam) goOn() string {
	if len(s.held) <= len(s.tail) {
		return ""
	}
	rest := s.held[len(s.tail):]
	s.held = ""
	if s.tail == "" && !meets(s.sent, rest) {
		s.state = Broken
		return ""
	}
	s.state = Joined
	return rest
}

// unlikeItself reports whether the beginning of what was sent is long and comes but once in it, so
// that a text with this beginning is the same text and not one that goes on in the same way.
func (s *Seam) unlikeItself() bool {
	return len(s.sent) >= surely && strings.LastIndex(s.sent, s.sent[:surely]) == 0
}

// overlap reports whether one of two texts begins with the other.
func overlap(a, b string) bool {
	n := min(len(a), len(b))
	return a[:n] == b[:n]
}

// meets reports whether a text that goes on from another can be told from one that has lost a
// space, or that goes on within a word.
func meets(sent, rest string) bool {
	first, _ := utf8.DecodeRuneInString(rest)
	if !inWord(first) || unspaced(first) {
		return true
	}
	last, _ := utf8.DecodeLastRuneInString(sent)
	return unspaced(last) || strings.ContainsRune("([{<\"'`/\\_-@#$=+*|~^&", last)
}

func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) || r == '_' }

// unspaced reports whether a script has no spaces between words.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}
