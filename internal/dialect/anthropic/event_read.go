package anthropic

import (
	"bytes"

	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewEventReader begins to read a streamed answer.
func (Dialect) NewEventReader(c *neutral.Context) neutral.EventReader {
	return &eventReader{c: c, calls: map[int64]int{}, text: -1, hidden: -1, byTool: answersByTool(c)}
}

type eventReader struct {
	c     *neutral.Context
	usage usage
	seal  []byte        // the signature of the open thought, which comes in one or more pieces
	calls map[int64]int // the block's index to the call's
	begun int           // calls so far
	// byTool: a call of the schema's tool is text. text is the index of the block with it.
	byTool bool
	text   int64
	hidden int64 // the index of a block of a kind that has no place elsewhere
}

// Read implements neutral.EventReader.
func (er *eventReader) Read(ev *sse.Event, out []neutral.Event) []neutral.Event {
	var s jsonscan.Scanner
	data := bytes.TrimSpace(ev.Data)
	if s = jsonscan.New(data); s.Peek() != '{' {
		return out
	}
	var kind string
	var index int64
	var delta, blockAt, messageAt, usageAt []byte
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "type":
			kind = kindOf(s.Text())
		case "index":
			index, _ = s.Int()
		case "delta":
			delta = s.Skip()
		case "content_block":
			blockAt = s.Skip()
		case "message":
			messageAt = s.Skip()
		case "usage":
			usageAt = s.Skip()
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return out
	}
	switch kind {
	case "message_start":
		return er.start(messageAt, out)
	case "content_block_start":
		return er.block(index, blockAt, out)
	case "content_block_delta":
		return er.delta(index, delta, out)
	case "content_block_stop":
		return er.stop(index, out)
	case "message_delta":
		return er.finish(delta, usageAt, out)
	}
	return out
}

// End implements neutral.EventReader.
func (er *eventReader) End(out []neutral.Event) []neutral.Event { return out }

func (er *eventReader) start(raw []byte, out []neutral.Event) []neutral.Event {
	var m answer
	if neutral.Decode(raw, &m) != nil {
		return out
	}
	er.usage.merge(m.Usage)
	return append(out, neutral.Event{Kind: neutral.EventStart, ID: m.ID, Model: m.Model},
		neutral.Event{Kind: neutral.EventUsage, Usage: er.usage.neutral()})
}

func (er *eventReader) block(index int64, raw []byte, out []neutral.Event) []neutral.Event {
	var b block
	if neutral.Decode(raw, &b) != nil {
		return out
	}
	er.seal, er.hidden = er.seal[:0], -1
	switch b.Type {
	case "text":
		if t := b.text(); t != "" {
			out = append(out, neutral.Event{Kind: neutral.EventText, Text: t})
		}
	case "thinking":
		if b.Thinking != nil && *b.Thinking != "" {
			out = append(out, neutral.Event{Kind: neutral.EventReasoning, Text: *b.Thinking})
		}
		er.seal = append(er.seal, b.Signature...)
	case "redacted_thinking":
		if b.Data != "" {
			out = append(out, neutral.Event{Kind: neutral.EventSeal, Seal: neutral.Seal{Origin: name, Value: b.Data, Redacted: true}})
		}
	case "tool_use":
		if er.byTool && b.Name == schemaTool {
			if er.text = index; neutral.Given(b.Input) {
				out = append(out, neutral.Event{Kind: neutral.EventText, Text: string(b.Input)})
			}
			break
		}
		er.calls[index] = er.begun
		out = append(out, neutral.Event{Kind: neutral.EventCall, Index: er.begun, ID: er.c.CallID(b.ID), Name: b.Name})
		if neutral.Given(b.Input) { // some services send it whole
			out = append(out, neutral.Event{Kind: neutral.EventArguments, Index: er.begun, Text: string(b.Input)})
		}
		er.begun++
	default:
		er.hidden = index
	}
	return out
}

func (er *eventReader) delta(index int64, raw []byte, out []neutral.Event) []neutral.Event {
	if index == er.hidden {
		return out
	}
	s := jsonscan.New(raw)
	for ok := s.Object(); ok; ok = s.More('}') {
		e := neutral.Event{}
		switch key := s.Key(); string(key) {
		case "text":
			e.Kind = neutral.EventText
		case "thinking":
			e.Kind = neutral.EventReasoning
		case "partial_json":
			if index == er.text {
				e.Kind = neutral.EventText
				break
			}
			call, ok := er.calls[index]
			if !ok { // of an upstream's own tool
				s.Skip()
				continue
			}
			e.Kind, e.Index = neutral.EventArguments, call
		case "signature":
			er.seal = append(er.seal, s.Text()...)
			continue
		default:
			s.Skip()
			continue
		}
		if e.Text = string(s.Text()); e.Text != "" {
			out = append(out, e)
		}
	}
	return out
}

func (er *eventReader) stop(index int64, out []neutral.Event) []neutral.Event {
	if len(er.seal) > 0 {
		out = append(out, neutral.Event{Kind: neutral.EventSeal, Seal: neutral.Unwrap(name, string(er.seal))})
		er.seal = er.seal[:0]
	}
	if call, ok := er.calls[index]; ok {
		out = append(out, neutral.Event{Kind: neutral.EventCallEnd, Index: call})
		delete(er.calls, index)
	}
	return out
}

func (er *eventReader) finish(delta, counted []byte, out []neutral.Event) []neutral.Event {
	var d struct {
		StopReason   string `json:"stop_reason"`
		StopSequence string `json:"stop_sequence"`
	}
	var u usage
	if len(delta) > 0 && neutral.Decode(delta, &d) == nil && d.StopReason != "" {
		ending := neutral.Ending{Finish: finishOf(d.StopReason), Native: d.StopReason, Stop: d.StopSequence}
		if er.text >= 0 {
			ending = ended(ending, er.begun > 0)
		}
		out = append(out, neutral.Event{Kind: neutral.EventFinish, Ending: ending})
	}
	if len(counted) > 0 && neutral.Decode(counted, &u) == nil {
		er.usage.merge(&u)
		out = append(out, neutral.Event{Kind: neutral.EventUsage, Usage: er.usage.neutral()})
	}
	return out
}
