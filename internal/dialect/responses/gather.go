package responses

import (
	"bytes"
	"slices"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

// NewGather implements dialect.Reshaper.
func (Dialect) NewGather(string) dialect.Gather { return &gather{} }

// gather is the whole response of a stream: its last event has all of it. Where that leaves out the output, it is in the
// events of its items, or at least in their pieces.
type gather struct {
	response jsonscan.Object
	items    []gatheredItem
}

type gatheredItem struct {
	place int64
	item  jsonscan.Object
	text  []byte // of a message, as JSON
}

// Next implements dialect.Gather.
func (g *gather) Next(ev *sse.Event) {
	in, ok := jsonscan.ReadObject(bytes.Clone(ev.Data))
	if !ok {
		return
	}
	switch in.Text("type") {
	case "response.completed", "response.incomplete":
		g.response, _ = jsonscan.ReadObject(in.Get("response"))
	case "response.output_item.added", "response.output_item.done":
		it := g.at(in)
		it.item, _ = jsonscan.ReadObject(in.Get("item"))
	case "response.output_text.delta":
		it, delta := g.at(in), in.Get("delta")
		switch {
		case len(delta) < len(`""`) || delta[0] != '"':
		case it.text == nil:
			it.text = delta
		default:
			it.text = append(it.text[:len(it.text)-1], delta[1:]...)
		}
	}
}

func (g *gather) at(in jsonscan.Object) *gatheredItem {
	s := jsonscan.New(in.Get("output_index"))
	place, _ := s.Int()
	for i := range g.items {
		if g.items[i].place == place {
			return &g.items[i]
		}
	}
	g.items = append(g.items, gatheredItem{place: place})
	return &g.items[len(g.items)-1]
}

// Answer implements dialect.Gather.
func (g *gather) Answer() ([]byte, bool) {
	if g.response == nil {
		return nil, false
	}
	if !jsonscan.Truthy(g.response.Get("output")) && len(g.items) > 0 {
		slices.SortStableFunc(g.items, func(a, b gatheredItem) int { return int(a.place - b.place) })
		var output [][]byte
		for i := range g.items {
			output = append(output, g.items[i].whole())
		}
		g.response.Set("output", jsonscan.AppendList(nil, output))
	}
	return g.response.JSON(), true
}

// whole returns the item, and a message that never was told whole with its text.
func (it *gatheredItem) whole() []byte {
	if it.item == nil {
		it.item = jsonscan.Object{{Key: "type", Value: []byte(`"message"`)}, {Key: "role", Value: []byte(`"assistant"`)}}
	}
	if it.item.Text("type") == "message" && it.text != nil && !jsonscan.Truthy(it.item.Get("content")) {
		part := jsonscan.Object{{Key: "type", Value: []byte(`"output_text"`)}, {Key: "text", Value: it.text}, {Key: "annotations", Value: []byte("[]")}}
		it.item.Set("content", jsonscan.AppendList(nil, [][]byte{part.JSON()}))
		it.item.Set("status", []byte(`"completed"`))
	}
	return it.item.JSON()
}
