package openai

import (
	"bytes"
	"slices"
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

// NewGather implements dialect.Reshaper.
func (Dialect) NewGather(id string) dialect.Gather { return &gather{ids: callIDs{id: id}} }

// gather is the whole answer that chunks add up to.
type gather struct {
	whole   jsonscan.Object // its members but for the choices
	choices []*gatheredChoice
	ids     callIDs
}

type gatheredChoice struct {
	index   int64
	choice  jsonscan.Object // without what it says
	message jsonscan.Object
	calls   []gatheredCall
}

type gatheredCall struct {
	index int64
	call  jsonscan.Object
}

// Next implements dialect.Gather. What a later chunk says of the whole answer takes the place of what an earlier one said.
func (g *gather) Next(ev *sse.Event) {
	chunk, ok := jsonscan.ReadObject(bytes.Clone(ev.Data))
	if !ok {
		return
	}
	for _, m := range chunk {
		switch {
		case m.Key == "choices":
			list, _ := jsonscan.ReadList(m.Value)
			for _, raw := range list {
				g.choice(raw)
			}
		case m.Key == "x_groq":
			x, _ := jsonscan.ReadObject(m.Value)
			g.usage(x.Get("usage"))
		case m.Key == "obfuscation": // of one chunk
		case jsonscan.Truthy(m.Value) || g.whole.Get(m.Key) == nil:
			g.whole.Set(m.Key, m.Value)
		}
	}
}

func (g *gather) usage(u []byte) {
	if jsonscan.Truthy(u) && !jsonscan.Truthy(g.whole.Get("usage")) {
		g.whole.Set("usage", u)
	}
}

func (g *gather) choice(raw []byte) {
	in, ok := jsonscan.ReadObject(raw)
	if !ok {
		return
	}
	c := g.at(in)
	for _, m := range in {
		switch m.Key {
		case "index":
		case "delta":
			c.say(m.Value)
		case "message":
			if in.Get("delta") == nil {
				c.say(m.Value)
			}
		case "usage":
			g.usage(m.Value)
		default:
			c.choice.Set(m.Key, merge(m.Key, c.choice.Get(m.Key), m.Value))
		}
	}
}

// at returns the choice that a chunk's one goes on with.
func (g *gather) at(in jsonscan.Object) *gatheredChoice {
	s := jsonscan.New(in.Get("index"))
	index, _ := s.Int()
	for _, c := range g.choices {
		if c.index == index {
			return c
		}
	}
	c := &gatheredChoice{index: index}
	g.choices = append(g.choices, c)
	return c
}

func (c *gatheredChoice) say(raw []byte) {
	delta, _ := jsonscan.ReadObject(raw)
	for _, m := range delta {
		if m.Key == "tool_calls" {
			list, _ := jsonscan.ReadList(m.Value)
			for place, piece := range list {
				c.called(piece, int64(place))
			}
			continue
		}
		c.message.Set(m.Key, merge(m.Key, c.message.Get(m.Key), m.Value))
	}
}

// called takes a piece of a call. Calls are told apart as by the reader of streams.
func (c *gatheredChoice) called(raw []byte, place int64) {
	piece, ok := jsonscan.ReadObject(raw)
	if !ok {
		return
	}
	s := jsonscan.New(piece.Get("index"))
	index, given := s.Int()
	if !given {
		index = place
	}
	function, _ := jsonscan.ReadObject(piece.Get("function"))
	call := c.find(index, piece.Text("id"), function.Text("name"))
	for _, m := range piece {
		if m.Key != "id" || call.Text("id") == "" {
			call.Set(m.Key, merge(m.Key, call.Get(m.Key), m.Value))
		}
	}
}

func (c *gatheredChoice) find(index int64, id, name string) *jsonscan.Object {
	last := -1
	for i := len(c.calls) - 1; i >= 0; i-- {
		if c.calls[i].index != index {
			continue
		}
		own := c.calls[i].call.Text("id")
		if id == "" || own == id || own == "" && last < 0 {
			return &c.calls[i].call
		}
		last = max(last, i)
	}
	if last < 0 || name != "" {
		c.calls = append(c.calls, gatheredCall{index: index})
		last = len(c.calls) - 1
	}
	return &c.calls[last].call
}

// Answer implements dialect.Gather.
func (g *gather) Answer() ([]byte, bool) {
	if len(g.choices) == 0 {
		return nil, false
	}
	slices.SortStableFunc(g.choices, func(a, b *gatheredChoice) int { return int(a.index - b.index) })
	list := make([][]byte, len(g.choices))
	for i, c := range g.choices {
		list[i] = c.whole(&g.ids)
	}
	if g.whole.Text("object") == "chat.completion.chunk" || g.whole.Get("object") == nil {
		g.whole.Set("object", []byte(`"chat.completion"`))
	}
	g.whole.Set("choices", jsonscan.AppendList(nil, list))
	return g.whole.JSON(), true
}

func (c *gatheredChoice) whole(ids *callIDs) []byte {
	out := jsonscan.Object{{Key: "index", Value: strconv.AppendInt(nil, c.index, 10)}}
	if c.choice.Get("text") == nil {
		out.Set("message", c.said(ids))
	}
	return append(out, c.choice...).JSON()
}

// said returns the message of a choice.
func (c *gatheredChoice) said(ids *callIDs) []byte {
	m := c.message
	if m.Get("role") == nil {
		m = append(jsonscan.Object{{Key: "role", Value: []byte(`"assistant"`)}}, m...)
	}
	if m.Get("content") == nil {
		m.Set("content", []byte("null"))
	}
	calls := make([][]byte, len(c.calls))
	for i := range c.calls {
		ids.complete(&c.calls[i].call)
		calls[i] = c.calls[i].call.JSON()
	}
	if len(calls) > 0 {
		m.Set("tool_calls", jsonscan.AppendList(nil, calls))
	}
	return m.JSON()
}

// merge returns what two values of a member come to: texts and lists go on, objects grow, and anything else takes the place
// of what was there unless it says nothing.
func merge(key string, a, b []byte) []byte {
	x, y := jsonscan.New(a), jsonscan.New(b)
	switch first := x.Peek(); {
	case first == 0 || first == 'n':
		return b
	case first != y.Peek():
	case first == '"' && grows(key):
		return append(a[:len(a)-1], b[1:]...) // in place, once it has been moved
	case first == '[':
		return mergeLists(a, b)
	case first == '{':
		return mergeObjects(a, b)
	}
	if !jsonscan.Truthy(b) {
		return a
	}
	return b
}

// grows reports whether a member's text comes in pieces.
func grows(key string) bool {
	switch key {
	case "content", "reasoning", "reasoning_content", "reasoning_text", "thinking", "refusal", "text", "summary", "data", "transcript", "arguments", "input":
		return true
	}
	return false
}

func mergeObjects(a, b []byte) []byte {
	x, _ := jsonscan.ReadObject(a)
	y, _ := jsonscan.ReadObject(b)
	for _, m := range y {
		x.Set(m.Key, merge(m.Key, x.Get(m.Key), m.Value))
	}
	return x.JSON()
}

// mergeLists appends a list to another. An element whose index and type the last one has goes on with it.
func mergeLists(a, b []byte) []byte {
	x, _ := jsonscan.ReadList(a)
	y, _ := jsonscan.ReadList(b)
	for _, raw := range y {
		piece, ok := jsonscan.ReadObject(raw)
		if ok && piece.Get("index") != nil && len(x) > 0 {
			last, _ := jsonscan.ReadObject(x[len(x)-1])
			if bytes.Equal(last.Get("index"), piece.Get("index")) && last.Text("type") == piece.Text("type") {
				x[len(x)-1] = mergeObjects(x[len(x)-1], raw)
				continue
			}
		}
		x = append(x, raw)
	}
	return jsonscan.AppendList(nil, x)
}
