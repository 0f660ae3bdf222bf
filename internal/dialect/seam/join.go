package seam

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// Join lets through what of an answer's events is new to the client.
type Join struct {
	seam  Seam
	spent dialect.Usage
	begun bool
	out   []neutral.Event
}

// NewJoin returns the join at a seam. spent is what earlier attempts have cost, as far as known: it
// is added to what the answer says of itself.
func NewJoin(s Seam, spent dialect.Usage) *Join { return &Join{seam: s, spent: spent} }

// State returns how far the join is.
func (j *Join) State() State { return j.seam.State() }

// Through takes the events of the answer and returns those that the client is to get. They are
// valid until the next call. Once the join is broken none come.
func (j *Join) Through(events []neutral.Event) []neutral.Event {
	j.out = j.out[:0]
	if !j.begun && j.spent.Known {
		j.out = append(j.out, neutral.Event{Kind: neutral.EventUsage, Usage: j.spent})
	}
	j.begun = true
	for i := range events {
		j.take(&events[i])
	}
	if j.seam.state == Broken {
		return nil
	}
	return j.out
}

func (j *Join) take(e *neutral.Event) {
	pending := j.seam.state == Pending
	switch e.Kind {
	case neutral.EventStart:
		return // the answer keeps its name
	case neutral.EventText:
		if !pending {
			break
		}
		fresh := *e
		if fresh.Text = j.seam.Take(e.Text); fresh.Text != "" {
			j.out = append(j.out, fresh)
		}
		return
	case neutral.EventUsage:
		sum := *e
		sum.Usage = Sum(j.spent, e.Usage)
		j.out = append(j.out, sum)
		return
	case neutral.EventReasoning, neutral.EventSeal:
		if pending {
			return // the client has the thoughts of the first, or none
		}
	default: // something else follows, so that the text must be there
		if pending {
			if rest := j.seam.End(); rest != "" {
				j.out = append(j.out, neutral.Event{Kind: neutral.EventText, Text: rest})
			}
		}
		if e.Kind == neutral.EventRefusal && pending {
			j.seam.state = Broken // it has changed its mind
		}
	}
	j.out = append(j.out, *e)
}

// Sum adds what two attempts have cost.
func Sum(a, b dialect.Usage) dialect.Usage {
	return dialect.Usage{
		Known: a.Known || b.Known,
		Input: a.Input + b.Input, Output: a.Output + b.Output,
		CacheRead: a.CacheRead + b.CacheRead, CacheWrite: a.CacheWrite + b.CacheWrite,
		Reasoning: a.Reasoning + b.Reasoning,
	}
}
