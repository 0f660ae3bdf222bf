package neutral

// Events returns the stream that says what a complete answer says.
func (a *Answer) Events() []Event {
	out := []Event{{Kind: EventStart, ID: a.ID, Model: a.Model}}
	calls := 0
	for i := range a.Parts {
		switch p := &a.Parts[i]; p.Kind {
		case PartText:
			out = append(out, Event{Kind: EventText, Text: p.Text})
		case PartRefusal:
			out = append(out, Event{Kind: EventRefusal, Text: p.Text})
		case PartReasoning:
			if p.Text != "" {
				out = append(out, Event{Kind: EventReasoning, Text: p.Text})
			}
			if p.Seal != (Seal{}) {
				out = append(out, Event{Kind: EventSeal, Seal: p.Seal})
			}
		case PartCall:
			c := &p.Call
			out = append(out, Event{Kind: EventCall, Index: calls, ID: c.ID, Name: c.Name, Custom: c.Custom},
				Event{Kind: EventArguments, Index: calls, Text: c.Arguments}, Event{Kind: EventCallEnd, Index: calls})
			calls++
		}
	}
	return append(out, Event{Kind: EventFinish, Ending: a.Ending}, Event{Kind: EventUsage, Usage: a.Usage})
}

// Gathering is the complete answer that the events of a stream add up to. The zero value is ready.
type Gathering struct {
	told  Told
	parts []Part
	calls map[int]int // the part of each call, by its index
}

// Add takes the next event.
func (g *Gathering) Add(e *Event) {
	if g.told.Note(e) {
		return
	}
	switch e.Kind {
	case EventText:
		g.say(PartText, e.Text)
	case EventRefusal:
		g.say(PartRefusal, e.Text)
	case EventReasoning:
		g.say(PartReasoning, e.Text)
	case EventSeal:
		if last := g.last(PartReasoning); last != nil && !e.Seal.Redacted {
			last.Seal = e.Seal
			return
		}
		g.parts = append(g.parts, Part{Kind: PartReasoning, Seal: e.Seal})
	case EventCall:
		if g.calls == nil {
			g.calls = map[int]int{}
		}
		g.calls[e.Index] = len(g.parts)
		g.parts = append(g.parts, Part{Kind: PartCall, Call: Call{ID: e.ID, Name: e.Name, Custom: e.Custom}})
	case EventArguments:
		if i, ok := g.calls[e.Index]; ok {
			g.parts[i].Call.Arguments += e.Text
		}
	}
}

func (g *Gathering) say(kind PartKind, text string) {
	if text == "" {
		return
	}
	if last := g.last(kind); last != nil {
		last.Text += text
		return
	}
	g.parts = append(g.parts, Part{Kind: kind, Text: text})
}

// last returns the last part where it is of that kind and can go on: a sealed thought is over.
func (g *Gathering) last(kind PartKind) *Part {
	if len(g.parts) == 0 {
		return nil
	}
	if p := &g.parts[len(g.parts)-1]; p.Kind == kind && p.Seal == (Seal{}) {
		return p
	}
	return nil
}

// Answer returns the answer so far.
func (g *Gathering) Answer() *Answer {
	return &Answer{ID: g.told.ID, Model: g.told.Model, Parts: g.parts, Ending: g.told.Ending, Usage: g.told.Usage}
}
