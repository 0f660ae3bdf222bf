package anthropic

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

// NewGather implements dialect.Reshaper.
func (Dialect) NewGather(string) dialect.Gather { return &gather{} }

// gather is the whole answer that a stream's events add up to.
type gather struct {
	message jsonscan.Object
	usage   jsonscan.Object
	blocks  []gatheredBlock
}

type gatheredBlock struct {
	index     string
	block     jsonscan.Object
	input     []byte // a JSON text, in pieces
	citations [][]byte
}

// Next implements dialect.Gather.
func (g *gather) Next(ev *sse.Event) {
	in, ok := jsonscan.ReadObject(bytes.Clone(ev.Data))
	if !ok {
		return
	}
	switch in.Text("type") {
	case "message_start":
		if g.message == nil {
			g.message, _ = jsonscan.ReadObject(in.Get("message"))
			g.count(g.message.Get("usage"))
		}
	case "content_block_start":
		block, _ := jsonscan.ReadObject(in.Get("content_block"))
		cites, _ := jsonscan.ReadList(block.Get("citations"))
		g.blocks = append(g.blocks, gatheredBlock{index: string(in.Get("index")), block: block, citations: cites})
	case "content_block_delta":
		for i := range g.blocks {
			if b := &g.blocks[i]; b.index == string(in.Get("index")) {
				b.add(in.Get("delta"))
			}
		}
	case "message_delta":
		delta, _ := jsonscan.ReadObject(in.Get("delta"))
		for _, m := range delta {
			g.message.Set(m.Key, m.Value)
		}
		g.count(in.Get("usage"))
	}
}

// count takes over what an event reports. Later ones leave out what they do not correct.
func (g *gather) count(raw []byte) {
	u, _ := jsonscan.ReadObject(raw)
	for _, m := range u {
		if s := jsonscan.New(m.Value); s.Peek() != 'n' || g.usage.Get(m.Key) == nil {
			g.usage.Set(m.Key, m.Value)
		}
	}
}

// add takes a piece of a block. Texts of kinds that are not known here grow, too.
func (b *gatheredBlock) add(raw []byte) {
	delta, _ := jsonscan.ReadObject(raw)
	for _, m := range delta {
		s, has := jsonscan.New(m.Value), b.block.Get(m.Key)
		switch {
		case m.Key == "type":
		case m.Key == "partial_json":
			b.input = append(b.input, s.Text()...)
		case m.Key == "citation":
			b.citations = append(b.citations, m.Value)
		case s.Peek() == '"' && len(has) > len(`""`) && has[0] == '"' && m.Key != "signature":
			b.block.Set(m.Key, append(has[:len(has)-1], m.Value[1:]...))
		default:
			b.block.Set(m.Key, m.Value)
		}
	}
}

// Answer implements dialect.Gather.
func (g *gather) Answer() ([]byte, bool) {
	if g.message == nil {
		return nil, false
	}
	list := make([][]byte, len(g.blocks))
	for i := range g.blocks {
		b := &g.blocks[i]
		if _, ok := jsonscan.ReadObject(b.input); ok {
			b.block.Set("input", b.input)
		}
		if len(b.citations) > 0 {
			b.block.Set("citations", jsonscan.AppendList(nil, b.citations))
		}
		list[i] = b.block.JSON()
	}
	g.message.Set("content", jsonscan.AppendList(nil, list))
	if g.usage != nil {
		g.message.Set("usage", g.usage.JSON())
	}
	return g.message.JSON(), true
}
