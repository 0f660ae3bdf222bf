package neutral

import (
	"bytes"
	"encoding/json"
)

// StepKind says what a step of a sequence is.
type StepKind uint8

// The kinds of steps.
const (
	StepOpen  StepKind = iota // a block begins; Event is its first event
	StepDelta                 // Event belongs to the open block
	StepClose                 // the open block, of which Event.Kind tells the kind, is whole
)

// Step is a change of the one block that is open.
type Step struct {
	Kind  StepKind
	Event Event
}

// Sequence puts the blocks of an answer one after another, for dialects in which only one is
// open at a time. A block that begins while a call is not whole waits: closing that call would
// hand out half of it as a whole one. The zero value is ready.
type Sequence struct {
	open    bool
	kind    EventKind // EventText, EventReasoning, EventRefusal or EventCall
	index   int       // of the open call
	args    []byte    // of the open call so far
	ended   bool      // the open call is whole by its upstream's word
	waiting []Event
	sealed  bool // the open thought has its seal
}

// Add appends the steps that an event makes. Events that are no part of a block make none.
func (s *Sequence) Add(e *Event, out []Step) []Step {
	switch e.Kind {
	case EventText, EventReasoning, EventRefusal, EventSeal, EventCall, EventArguments, EventCallEnd:
	default:
		return out
	}
	if len(s.waiting) > 0 && !s.owns(e) {
		s.waiting = append(s.waiting, *e)
		return out
	}
	out = s.take(e, out)
	if len(s.waiting) > 0 && s.whole() {
		out = s.resume(out)
	}
	return out
}

// End closes what is open and lets out what waits: the answer is over.
func (s *Sequence) End(out []Step) []Step {
	for {
		out = s.close(out)
		if len(s.waiting) == 0 {
			return out
		}
		out = s.resume(out)
	}
}

func (s *Sequence) resume(out []Step) []Step {
	list := s.waiting
	s.waiting = nil
	for i := range list {
		out = s.Add(&list[i], out)
	}
	return out
}

// owns reports whether an event belongs to the open block.
func (s *Sequence) owns(e *Event) bool {
	switch e.Kind {
	case EventArguments, EventCallEnd:
		return s.open && s.kind == EventCall && s.index == e.Index
	case EventSeal:
		return s.open && s.kind == EventReasoning && !s.sealed
	case EventReasoning:
		return s.open && s.kind == EventReasoning && !s.sealed
	case EventCall:
		return false
	}
	return s.open && s.kind == e.Kind
}

// whole reports whether the open block may be closed.
func (s *Sequence) whole() bool {
	if !s.open || s.kind != EventCall || s.ended {
		return true
	}
	args := bytes.TrimSpace(s.args)
	return len(args) > 1 && args[len(args)-1] == '}' && json.Valid(args)
}

func (s *Sequence) take(e *Event, out []Step) []Step {
	if s.owns(e) {
		switch e.Kind {
		case EventCallEnd:
			s.ended = true
			return out
		case EventArguments:
			s.args = append(s.args, e.Text...)
		case EventSeal:
			s.sealed = true
		}
		return append(out, Step{StepDelta, *e})
	}
	if e.Kind == EventArguments || e.Kind == EventCallEnd {
		return out // of a call that was closed, and nothing can follow
	}
	if !s.whole() {
		s.waiting = append(s.waiting, *e)
		return out
	}
	out = s.close(out)
	s.open, s.kind, s.index, s.args, s.ended, s.sealed = true, e.Kind, e.Index, s.args[:0], false, false
	if e.Kind == EventSeal {
		s.kind, s.sealed = EventReasoning, true
		first := *e
		first.Kind = EventReasoning
		first.Text = ""
		first.Seal = Seal{}
		return append(out, Step{StepOpen, first}, Step{StepDelta, *e})
	}
	return append(out, Step{StepOpen, *e})
}

func (s *Sequence) close(out []Step) []Step {
	if !s.open {
		return out
	}
	s.open = false
	return append(out, Step{StepClose, Event{Kind: s.kind, Index: s.index}})
}
