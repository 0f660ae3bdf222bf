package gemini

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewEventReader begins to read a streamed answer.
func (Dialect) NewEventReader(c *neutral.Context) neutral.EventReader { return &eventReader{c: c} }

type eventReader struct {
	c         *neutral.Context
	id, model string
	begun     int // calls so far
	partial   *partialCall
}

// Read implements neutral.EventReader.
func (er *eventReader) Read(ev *sse.Event, out []neutral.Event) []neutral.Event {
	data := bytes.TrimSpace(ev.Data)
	var in answer
	if len(data) == 0 || data[0] != '{' || neutral.Decode(data, &in) != nil {
		return out
	}
	if in.ResponseID != er.id || in.ModelVersion != er.model {
		er.id, er.model = in.ResponseID, in.ModelVersion
		out = append(out, neutral.Event{Kind: neutral.EventStart, ID: er.id, Model: er.model})
	}
	end := neutral.Event{Kind: neutral.EventFinish}
	if len(in.Candidates) > 0 {
		first := &in.Candidates[0]
		for i := range first.Content.Parts {
			out = er.part(&first.Content.Parts[i], out)
		}
		end.Finish, end.Native = finishOf(first.FinishReason), first.FinishReason
		if end.Finish != dialect.FinishNone {
			out = er.endPartial(out)
		}
		if end.Finish == dialect.FinishStop && er.begun > 0 {
			end.Finish = dialect.FinishToolCalls
		}
	}
	if b := in.PromptFeedback; b != nil && b.BlockReason != "" {
		end.Finish, end.Native = dialect.FinishFilter, b.BlockReason
	}
	if in.UsageMetadata != nil {
		if c, err := scanChunk(data); err == nil && c.usage.Known {
			out = append(out, neutral.Event{Kind: neutral.EventUsage, Usage: c.usage})
		}
	}
	if end.Finish != dialect.FinishNone {
		out = append(out, end)
	}
	return out
}

func (er *eventReader) part(p *part, out []neutral.Event) []neutral.Event {
	switch {
	case p.FunctionCall != nil:
		if p.ThoughtSignature != "" {
			out = append(out, neutral.Event{Kind: neutral.EventSeal, Seal: neutral.Unwrap(name, p.ThoughtSignature)})
		}
		return er.call(p.FunctionCall, out)
	case p.Text == nil:
	case p.Thought:
		if *p.Text != "" {
			out = append(out, neutral.Event{Kind: neutral.EventReasoning, Text: *p.Text})
		}
		if p.ThoughtSignature != "" {
			out = append(out, neutral.Event{Kind: neutral.EventSeal, Seal: neutral.Unwrap(name, p.ThoughtSignature)})
		}
	case *p.Text != "":
		out = append(out, neutral.Event{Kind: neutral.EventText, Text: *p.Text})
	}
	return out
}

// call reads a call, which comes whole, or in pieces where the client has asked for such.
func (er *eventReader) call(f *functionCall, out []neutral.Event) []neutral.Event {
	if f.Name != "" {
		out = er.endPartial(out)
		id := f.ID
		if id == "" {
			id = er.c.NewID("call_")
		}
		out = append(out, neutral.Event{Kind: neutral.EventCall, Index: er.begun, ID: id, Name: f.Name})
		er.begun++
		if !f.WillContinue && len(f.PartialArgs) == 0 {
			return er.whole(string(f.Args), out)
		}
		er.partial = &partialCall{}
	}
	if er.partial == nil {
		return out
	}
	for i := range f.PartialArgs {
		er.partial.add(&f.PartialArgs[i])
	}
	if !f.WillContinue {
		out = er.endPartial(out)
	}
	return out
}

func (er *eventReader) whole(args string, out []neutral.Event) []neutral.Event {
	if args == "" || args == "null" {
		args = "{}"
	}
	return append(out, neutral.Event{Kind: neutral.EventArguments, Index: er.begun - 1, Text: args},
		neutral.Event{Kind: neutral.EventCallEnd, Index: er.begun - 1})
}

func (er *eventReader) endPartial(out []neutral.Event) []neutral.Event {
	if er.partial == nil {
		return out
	}
	args := er.partial.json()
	er.partial = nil
	return er.whole(args, out)
}

// End implements neutral.EventReader.
func (er *eventReader) End(out []neutral.Event) []neutral.Event { return er.endPartial(out) }
