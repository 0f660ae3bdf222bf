package seam

import (
	"strings"
	"testing"

	"omniroute/internal/dialect/neutral"
)

func TestSentRulesOut(t *testing.T) {
	t.Parallel()
	text := func(s string) neutral.Event { return neutral.Event{Kind: neutral.EventText, Text: s} }
	thought := neutral.Event{Kind: neutral.EventReasoning, Text: "hm"}
	for _, c := range []struct {
		name   string
		events []neutral.Event
		lost   string
	}{
		{"a text", []neutral.Event{text("a"), text("b")}, ""},
		{"a thought and a text", []neutral.Event{thought, {Kind: neutral.EventSeal}, text("a")}, ""},
		{"nothing", nil, "no text yet"},
		{"a thought alone", []neutral.Event{thought}, "no text yet"},
		{"a thought behind the text", []neutral.Event{text("a"), thought}, "thought"},
		{"a call that has begun", []neutral.Event{text("a"), {Kind: neutral.EventCall, Name: "f"}}, "tool"},
		{"a refusal", []neutral.Event{{Kind: neutral.EventRefusal, Text: "no"}}, "refuses"},
		{"an end", []neutral.Event{text("a"), {Kind: neutral.EventFinish}}, "over"},
		{"half a character", []neutral.Event{text("a\uFFFD")}, "cannot be read"},
		{"as much as is kept", []neutral.Event{text(strings.Repeat("x", MaxText))}, ""},
		{"more than is kept", []neutral.Event{text(strings.Repeat("x", MaxText)), text("x")}, "too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s Sent
			for i := range c.events {
				s.Note(&c.events[i])
			}
			if lost := s.Lost(); (lost == "") != (c.lost == "") || !strings.Contains(lost, c.lost) {
				t.Errorf("lost: %q", lost)
			}
			if s.Lost() != "" && s.Text() != "" {
				t.Error("a text that nobody needs is kept")
			}
		})
	}
}

// An event that was lost at the end of what came is no hole; one within the text is.
func TestSentHoles(t *testing.T) {
	t.Parallel()
	var s Sent
	piece := neutral.Event{Kind: neutral.EventText, Text: "a"}
	s.Note(&piece)
	s.Drop()
	if s.Lost() != "" {
		t.Errorf("lost: %q", s.Lost())
	}
	s.Note(&piece)
	if s.Lost() == "" {
		t.Error("a text with a hole is gone on with")
	}
}
