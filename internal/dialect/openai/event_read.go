package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewEventReader begins to read a streamed answer. Of several choices the first counts.
func (Dialect) NewEventReader(c *neutral.Context) neutral.EventReader {
	return &eventReader{c: c}
}

type eventReader struct {
	c     *neutral.Context
	calls []streamedCall
	begun int
	id    string
	model string
}

// streamedCall is a call as its fragments come. It begins when its name is known.
type streamedCall struct {
	key   int64 // the upstream's index
	index int   // ours, from when it has begun
	begun bool
	id    string
	name  string
	args  string // what came before it began; of a call without an id all that came
	free  bool   // a custom call, whose text is still open
	said  bool   // some of the arguments have come; white space before them says nothing
}

// Read implements neutral.EventReader.
func (er *eventReader) Read(ev *sse.Event, out []neutral.Event) []neutral.Event {
	s := jsonscan.New(bytes.TrimSpace(ev.Data))
	if s.Peek() != '{' {
		return out
	}
	var id, model []byte
	var count, groqCount dialect.Usage
	first := len(out)
	out = append(out, neutral.Event{}) // the place of the start
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "id":
			id = s.Text()
		case "model":
			model = s.Text()
		case "choices":
			for ok := s.Array(); ok; ok = s.More(']') {
				out = er.choice(&s, out)
			}
		case "usage":
			count = scanUsage(&s)
		case "x_groq":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) == "usage" {
					groqCount = scanUsage(&s)
				} else {
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return out[:first]
	}
	if er.id == "" && len(id) > 0 || er.model == "" && len(model) > 0 {
		er.id, er.model = string(id), string(model)
		out[first] = neutral.Event{Kind: neutral.EventStart, ID: er.id, Model: er.model}
	} else {
		out = append(out[:first], out[first+1:]...)
	}
	if !count.Known {
		count = groqCount
	}
	if count.Known {
		out = append(out, neutral.Event{Kind: neutral.EventUsage, Usage: count})
	}
	return out
}

func (er *eventReader) choice(s *jsonscan.Scanner, out []neutral.Event) []neutral.Event {
	if s.Peek() != '{' {
		s.Skip()
		return out
	}
	var index int64
	var delta, message []byte
	var end ending
	var plainText string
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "index":
			index, _ = s.Int()
		case "delta":
			delta = s.Skip()
		case "message":
			message = s.Skip()
		case "text":
			plainText = string(s.Text())
		case "finish_reason":
			end = finishOf(s.Text())
		case "usage":
			if u := scanUsage(s); u.Known {
				out = append(out, neutral.Event{Kind: neutral.EventUsage, Usage: u})
			}
		default:
			s.Skip()
		}
	}
	if index != 0 {
		return out
	}
	if delta == nil {
		delta = message
	}
	if plainText != "" {
		out = append(out, neutral.Event{Kind: neutral.EventText, Text: plainText})
	}
	if delta != nil {
		out = er.delta(delta, out)
	}
	if end.finish != dialect.FinishNone {
		for i := range er.calls {
			if c := &er.calls[i]; c.free && end.finish != dialect.FinishLength {
				c.free = false
				out = append(out, neutral.Event{Kind: neutral.EventArguments, Index: c.index, Text: neutral.FreeEnd})
			}
		}
		out = append(out, neutral.Event{Kind: neutral.EventFinish, Ending: neutral.Ending{Finish: end.finish, Native: end.native}})
	}
	return out
}

// delta reads thoughts before text and calls, whatever the order of the members.
func (er *eventReader) delta(raw []byte, out []neutral.Event) []neutral.Event {
	var thought, said, refusal, alias string
	var calls, legacy, images, details []byte
	s := jsonscan.New(raw)
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "content":
			if s.Peek() == '[' {
				said, alias = contentList(s.Skip())
			} else {
				said = string(s.Text())
			}
		case "reasoning_content":
			thought = string(s.Text())
		case "reasoning", "reasoning_text", "thinking":
			if t := s.Text(); len(t) > 0 {
				alias = string(t)
			}
		case "refusal":
			refusal = string(s.Text())
		case "reasoning_details":
			details = s.Skip()
		case "images":
			images = s.Skip()
		case "tool_calls":
			calls = s.Skip()
		case "function_call":
			legacy = s.Skip()
		default:
			s.Skip()
		}
	}
	if thought == "" {
		thought = alias
	}
	if thought == "" && details != nil {
		thought = detailsText(details)
	}
	if thought != "" {
		out = append(out, neutral.Event{Kind: neutral.EventReasoning, Text: thought})
	}
	if said != "" {
		out = append(out, neutral.Event{Kind: neutral.EventText, Text: said})
	}
	if shown := imagesText(images); shown != "" {
		out = append(out, neutral.Event{Kind: neutral.EventText, Text: shown})
	}
	if refusal != "" {
		out = append(out, neutral.Event{Kind: neutral.EventRefusal, Text: refusal})
	}
	if legacy != nil {
		out = er.call(append(append([]byte(`{"index":0,"function":`), legacy...), '}'), 0, out)
	}
	if calls == nil {
		return out
	}
	s = jsonscan.New(calls)
	for ok, i := s.Array(), int64(0); ok; ok, i = s.More(']'), i+1 {
		out = er.call(s.Skip(), i, out)
	}
	return out
}

// contentList reads content in parts, as Mistral sends it.
func contentList(raw []byte) (said, thought string) {
	var parts []contentPart
	if neutral.Decode(raw, &parts) != nil {
		return "", ""
	}
	for _, p := range parts {
		said += p.Text
		thought += thinkingText(p.Thinking)
	}
	return said, thought
}

// call reads a fragment of a call. place is its place in the list, for services without an index.
func (er *eventReader) call(raw []byte, place int64, out []neutral.Event) []neutral.Event {
	key, id, name, args, seal := place, "", "", "", ""
	free := false
	s := jsonscan.New(raw)
	for ok := s.Object(); ok; ok = s.More('}') {
		switch k := s.Key(); string(k) {
		case "index":
			if n, ok := s.Int(); ok {
				key = n
			}
		case "id":
			id = string(s.Text())
		case "function", "custom":
			free = k[0] == 'c'
			for ok := s.Object(); ok; ok = s.More('}') {
				switch k := s.Key(); string(k) {
				case "name":
					name = string(s.Text())
				case "input":
					args = neutral.FreeFragment(string(s.Text()))
				case "arguments":
					if s.Peek() == '{' {
						args = string(s.Skip())
					} else {
						args = string(s.Text())
					}
				default:
					s.Skip()
				}
			}
		case "extra_content":
			var x extraContent
			if neutral.Decode(s.Skip(), &x) == nil {
				seal = x.Google.ThoughtSignature
			}
		default:
			s.Skip()
		}
	}
	c := er.find(key, id, name)
	if c.begun && c.id == "" && name != "" && args != "" && json.Valid([]byte(c.args)) {
		// Another call whose upstream gives calls neither ids nor places of their own.
		er.calls = append(er.calls, streamedCall{key: key})
		c = &er.calls[len(er.calls)-1]
	}
	if id != "" && c.id == "" {
		c.id = id
	}
	if !c.said && !free {
		if args = strings.TrimLeft(args, " \t\r\n"); strings.TrimRight(args, " \t\r\n") == "null" {
			args = "" // some models' word for none
		}
		c.said = args != ""
	}
	if !c.begun {
		if c.name == "" {
			c.name = name
		}
		c.args += args
		if c.name == "" {
			return out
		}
		if c.free = free; free {
			c.args = neutral.FreeBegin + c.args
		}
		return er.begin(c, seal, out)
	}
	if args != "" {
		if c.id == "" {
			c.args += args
		}
		out = append(out, neutral.Event{Kind: neutral.EventArguments, Index: c.index, Text: args})
	}
	return out
}

// find returns the call of an index. Some services give every call the same index and tell
// them apart by the id; others make up an id for every piece, so that one without a name goes on with the
// last call.
func (er *eventReader) find(key int64, id, name string) *streamedCall {
	var last *streamedCall
	for i := len(er.calls) - 1; i >= 0; i-- {
		c := &er.calls[i]
		switch {
		case c.key != key:
			continue
		case id == "", c.id == id, c.id == "" && last == nil:
			return c
		case last == nil:
			last = c
		}
	}
	if last != nil && name == "" {
		return last
	}
	er.calls = append(er.calls, streamedCall{key: key})
	return &er.calls[len(er.calls)-1]
}

func (er *eventReader) begin(c *streamedCall, seal string, out []neutral.Event) []neutral.Event {
	c.begun, c.index = true, er.begun
	er.begun++
	id := er.c.CallID(c.id)
	if seal != "" {
		out = append(out, neutral.Event{Kind: neutral.EventSeal, Seal: neutral.Unwrap("gemini", seal)})
	}
	out = append(out, neutral.Event{Kind: neutral.EventCall, Index: c.index, ID: id, Name: c.name, Custom: c.free})
	if c.args != "" {
		out = append(out, neutral.Event{Kind: neutral.EventArguments, Index: c.index, Text: c.args})
	}
	return out
}

// End implements neutral.EventReader.
func (er *eventReader) End(out []neutral.Event) []neutral.Event { return out }
