package gemini

import (
	"bytes"
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

var (
	_ dialect.Reshaper = Dialect{}
	_ dialect.Lister   = Dialect{}
)

// Streamed implements dialect.Reshaper: an event has the form of an answer here.
func (Dialect) Streamed(_ *dialect.Request, body []byte, _ string) ([]byte, bool) {
	whole, ok := jsonscan.ReadObject(body)
	return sse.Append(nil, "", whole.JSON()), ok
}

// Unlisted implements dialect.Lister: a stream that was not asked for as events is a list of answers.
func (d Dialect) Unlisted(body []byte) ([]byte, bool) {
	if _, failed := d.ReadError(body); failed {
		return nil, false
	}
	list, ok := jsonscan.ReadList(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	var out []byte
	for _, raw := range list {
		out = sse.Append(out, "", jsonscan.AppendLine(nil, raw))
	}
	return out, ok && len(list) > 0
}

// NewGather implements dialect.Reshaper.
func (Dialect) NewGather(string) dialect.Gather { return &gather{} }

// gather is the whole answer that a stream's events add up to. What a later one says takes the place of what an earlier one
// said, but for the parts, which go on.
type gather struct {
	whole      jsonscan.Object
	candidates []gatheredCandidate
}

type gatheredCandidate struct {
	index   int64
	members jsonscan.Object // but for the parts
	parts   [][]byte
}

// Next implements dialect.Gather.
func (g *gather) Next(ev *sse.Event) {
	in, _ := jsonscan.ReadObject(bytes.Clone(ev.Data))
	for _, m := range in {
		if m.Key != "candidates" {
			g.whole.Set(m.Key, m.Value)
			continue
		}
		list, _ := jsonscan.ReadList(m.Value)
		for _, raw := range list {
			if c, ok := jsonscan.ReadObject(raw); ok {
				g.candidate(c)
			}
		}
	}
}

func (g *gather) candidate(in jsonscan.Object) {
	s := jsonscan.New(in.Get("index"))
	index, _ := s.Int()
	at := 0
	for at < len(g.candidates) && g.candidates[at].index != index {
		at++
	}
	if at == len(g.candidates) {
		g.candidates = append(g.candidates, gatheredCandidate{index: index})
	}
	c := &g.candidates[at]
	for _, m := range in {
		if m.Key != "content" {
			c.members.Set(m.Key, m.Value)
			continue
		}
		content, _ := jsonscan.ReadObject(m.Value)
		parts, _ := jsonscan.ReadList(content.Get("parts"))
		for _, p := range parts {
			c.add(p)
		}
	}
}

// add takes a part. A text goes on with the text before it, unless one of them is sealed.
func (c *gatheredCandidate) add(raw []byte) {
	part, ok := jsonscan.ReadObject(raw)
	if !ok {
		return
	}
	if n := len(c.parts); n > 0 && plainText(part) {
		last, _ := jsonscan.ReadObject(c.parts[n-1])
		has, more := last.Get("text"), part.Get("text")
		if plainText(last) && bytes.Equal(last.Get("thought"), part.Get("thought")) {
			last.Set("text", append(has[:len(has)-1:len(has)-1], more[1:]...))
			c.parts[n-1] = last.JSON()
			return
		}
	}
	c.parts = append(c.parts, raw)
}

// plainText reports whether a part is a text, of a thought or not, and nothing else.
func plainText(p jsonscan.Object) bool {
	for _, m := range p {
		if m.Key != "text" && m.Key != "thought" {
			return false
		}
	}
	text := p.Get("text")
	return len(text) > 0 && text[0] == '"'
}

// Answer implements dialect.Gather.
func (g *gather) Answer() ([]byte, bool) {
	if g.whole == nil && g.candidates == nil {
		return nil, false
	}
	var list [][]byte
	for _, c := range g.candidates {
		content := jsonscan.Object{{Key: "parts", Value: jsonscan.AppendList(nil, c.parts)}, {Key: "role", Value: []byte(`"model"`)}}
		out := append(jsonscan.Object{{Key: "content", Value: content.JSON()}}, c.members...)
		out.Set("index", strconv.AppendInt(nil, c.index, 10))
		list = append(list, out.JSON())
	}
	if list != nil {
		g.whole = append(jsonscan.Object{{Key: "candidates", Value: jsonscan.AppendList(nil, list)}}, g.whole...)
	}
	return g.whole.JSON(), true
}
