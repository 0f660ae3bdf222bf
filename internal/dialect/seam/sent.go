package seam

import (
	"strings"

	"omniroute/internal/dialect/neutral"
)

// MaxText is how much of a text is kept at most, in bytes. A longer answer is not finished by
// another attempt.
const MaxText = 256 << 10

// Sent is what a client has of an answer. The zero value is ready.
type Sent struct {
	text    []byte
	thought bool
	hole    bool // an event was lost behind the text
	lost    string
}

// Note takes in an event that the client has got.
func (s *Sent) Note(e *neutral.Event) {
	switch e.Kind {
	case neutral.EventText:
		s.add(e.Text)
	case neutral.EventReasoning, neutral.EventSeal:
		if len(s.text) > 0 {
			s.Lose("a thought came behind the text")
		}
		s.thought = true
	case neutral.EventRefusal:
		s.Lose("the answer refuses")
	case neutral.EventCall, neutral.EventArguments, neutral.EventCallEnd:
		s.Lose("the answer calls a tool")
	case neutral.EventFinish:
		s.Lose("the answer was over")
	}
}

func (s *Sent) add(text string) {
	switch {
	case text == "" || s.lost != "":
	case s.hole:
		s.Lose("an event that could not be read is missing in the text")
	case len(s.text)+len(text) > MaxText:
		s.Lose("the answer is too long")
	case strings.ContainsRune(text, '\uFFFD'):
		s.Lose("a part of the text cannot be read") // half a character in an escape, for one
	default:
		s.text = append(s.text, text...)
	}
}

// Drop says that an event was lost, which may have been a part of the text.
func (s *Sent) Drop() { s.hole = true }

// Lose says that the answer cannot be finished by another attempt, and why. The first reason counts.
func (s *Sent) Lose(why string) {
	if s.lost == "" {
		s.lost, s.text = why, nil
	}
}

// Lost returns why the answer cannot be finished by another attempt, empty when it can.
func (s *Sent) Lost() string {
	if s.lost == "" && len(s.text) == 0 {
		return "there is no text yet"
	}
	return s.lost
}

// Hopeless reports whether nothing that comes can change that the answer is Lost.
func (s *Sent) Hopeless() bool { return s.lost != "" }

// Text returns the text that the client has.
func (s *Sent) Text() string { return string(s.text) }

// Thought reports whether the answer began with a thought. Such an answer can only be said again:
// no model goes on from another one's thoughts.
func (s *Sent) Thought() bool { return s.thought }
