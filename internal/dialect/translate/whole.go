package translate

import (
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// Streamed returns a complete answer of the upstream as the whole stream that the client has asked for: some upstreams
// answer at once whatever they are asked. The error is as of Answer.
func (t *Translation) Streamed(body []byte) ([]byte, error) {
	a, err := t.read(body)
	if err != nil {
		return nil, err
	}
	w := t.from.NewEventWriter(&t.context)
	var out []byte
	events := a.Events()
	for i := range events {
		out = w.Write(out, &events[i])
	}
	return w.End(out), nil
}

// Gather makes a complete answer of a stream that the client has not asked for: some upstreams stream whatever they
// are asked. It is not safe for use by several goroutines.
type Gather struct {
	t      *Translation
	reader neutral.EventReader
	events []neutral.Event
	whole  neutral.Gathering
}

// Gather begins to take a streamed answer.
func (t *Translation) Gather() *Gather {
	return &Gather{t: t, reader: t.to.NewEventReader(&t.context)}
}

// Next takes an upstream's event, which its dialect has found to be neither an error nor malformed.
func (g *Gather) Next(ev *sse.Event) { g.add(g.reader.Read(ev, g.events[:0])) }

// Answer returns the client's answer. It is to be called once, when the upstream's dialect says that the answer is
// complete.
func (g *Gather) Answer() ([]byte, bool) {
	g.add(g.reader.End(g.events[:0]))
	return g.t.from.WriteAnswer(&g.t.context, g.whole.Answer()), true
}

func (g *Gather) add(events []neutral.Event) {
	g.events = events
	for i := range events {
		e := &events[i]
		if e.Kind == neutral.EventCall {
			g.t.own(&e.Name, &e.Custom)
		}
		g.whole.Add(e)
	}
}
