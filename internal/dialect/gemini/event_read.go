package gemini

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
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
	s := jsonscan.New(bytes.TrimSpace(ev.Data))
	if s.Peek() != '{' {
		return out
	}
	var id, model, parts, reason, blocked []byte
	var usage dialect.Usage
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "candidates":
			for ok := s.Array(); ok; ok = s.More(']') {
				if p, r, first := scanCandidate(&s); first {
					parts, reason = p, r
				}
			}
		case "promptFeedback":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) == "blockReason" {
					blocked = s.Text()
				} else {
					s.Skip()
				}
			}
		case "usageMetadata":
			usage = scanUsage(&s)
		case "responseId":
			id = s.Text()
		case "modelVersion":
			model = s.Text()
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return out
	}
	if string(id) != er.id || string(model) != er.model {
		er.id, er.model = string(id), string(model)
		out = append(out, neutral.Event{Kind: neutral.EventStart, ID: er.id, Model: er.model})
	}
	if parts != nil {
		s = jsonscan.New(parts)
		for ok := s.Array(); ok; ok = s.More(']') {
			s.Peek()
			out = er.part(s.Skip(), out)
		}
	}
	return er.end(string(reason), string(blocked), usage, out)
}

// scanCandidate reads a candidate: its parts, why it ended, and whether it is the first, which counts. Each
// event of a stream may hold another one.
func scanCandidate(s *jsonscan.Scanner) (parts, reason []byte, first bool) {
	first = true
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "content":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) == "parts" && s.Peek() == '[' {
					parts = s.Skip()
				} else {
					s.Skip()
				}
			}
		case "finishReason":
			reason = s.Text()
		case "index":
			n, _ := s.Int()
			first = n == 0
		default:
			s.Skip()
		}
	}
	return parts, reason, first
}

func (er *eventReader) end(reason, blocked string, usage dialect.Usage, out []neutral.Event) []neutral.Event {
	end := neutral.Event{Kind: neutral.EventFinish}
	end.Finish, end.Native = finishOf(reason), reason
	if end.Finish != dialect.FinishNone {
		out = er.endPartial(out)
	}
	if end.Finish == dialect.FinishStop && er.begun > 0 {
		end.Finish = dialect.FinishToolCalls
	}
	if blocked != "" && blocked != "BLOCK_REASON_UNSPECIFIED" {
		end.Finish, end.Native = dialect.FinishFilter, blocked
	}
	if usage.Known {
		out = append(out, neutral.Event{Kind: neutral.EventUsage, Usage: usage})
	}
	if end.Finish != dialect.FinishNone {
		out = append(out, end)
	}
	return out
}

// part reads a text by itself, which is most of a stream, and leaves the rest to the decoder.
func (er *eventReader) part(raw []byte, out []neutral.Event) []neutral.Event {
	var p part
	s := jsonscan.New(raw)
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "text":
			if text := s.Text(); text != nil {
				said := string(text)
				p.Text = &said
			}
		case "thought":
			p.Thought = s.Peek() == 't'
			s.Skip()
		case "thoughtSignature":
			p.ThoughtSignature = string(s.Text())
		case "functionCall":
			if neutral.Decode(s.Skip(), &p.FunctionCall) != nil {
				return out
			}
		case "inlineData":
			if neutral.Decode(s.Skip(), &p.InlineData) != nil {
				return out
			}
		case "fileData":
			if neutral.Decode(s.Skip(), &p.FileData) != nil {
				return out
			}
		default:
			s.Skip()
		}
	}
	return er.take(&p, out)
}

func (er *eventReader) take(p *part, out []neutral.Event) []neutral.Event {
	switch {
	case p.FunctionCall != nil:
		if p.ThoughtSignature != "" {
			out = append(out, neutral.Event{Kind: neutral.EventSeal, Seal: neutral.Unwrap(name, p.ThoughtSignature)})
		}
		return er.call(p.FunctionCall, out)
	case p.Text == nil:
		if shown := p.shown(); shown != "" {
			out = append(out, neutral.Event{Kind: neutral.EventText, Text: shown})
		}
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
		out = append(out, neutral.Event{Kind: neutral.EventCall, Index: er.begun, ID: er.c.CallID(f.ID), Name: f.Name})
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
