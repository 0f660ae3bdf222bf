package anthropic

import (
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

var _ dialect.Reshaper = Dialect{}

// Streamed implements dialect.Reshaper.
func (d Dialect) Streamed(_ *dialect.Request, body []byte, _ string) ([]byte, bool) {
	whole, ok := jsonscan.ReadObject(body)
	content, listed := jsonscan.ReadList(whole.Get("content"))
	if !ok || !listed {
		return nil, false
	}
	delta, usage := jsonscan.Object{}, whole.Get("usage")
	if !jsonscan.Truthy(usage) { // official clients fail without
		usage = []byte(`{"input_tokens":0,"output_tokens":0}`)
		whole.Set("usage", usage)
	}
	for _, key := range []string{"stop_reason", "stop_sequence", "stop_details", "container"} {
		if v := whole.Get(key); v != nil {
			delta.Set(key, v)
		}
	}
	if delta.Text("stop_reason") == "" { // the answer is whole all the same
		delta.Set("stop_reason", []byte(`"end_turn"`))
	}
	whole.Set("content", []byte("[]"))
	whole.Set("stop_reason", []byte("null"))
	whole.Set("stop_sequence", []byte("null"))
	whole.Delete("stop_details")
	out := appendEvent(nil, "message_start", jsonscan.Member{Key: "message", Value: whole.JSON()})
	for i, raw := range content {
		if out, ok = appendBlock(out, i, raw); !ok {
			return nil, false
		}
	}
	out = appendEvent(out, "message_delta", jsonscan.Member{Key: "delta", Value: delta.JSON()}, jsonscan.Member{Key: "usage", Value: usage})
	return append(out, d.Terminator()...), true
}

func appendEvent(dst []byte, kind string, members ...jsonscan.Member) []byte {
	ev := jsonscan.Object{{Key: "type", Value: dialect.AppendString(nil, kind)}}
	for _, m := range members {
		if m.Value != nil {
			ev = append(ev, m)
		}
	}
	return sse.Append(dst, kind, ev.JSON())
}

// grown are the members of a block that come in pieces, in their order, with the type of the piece and its member.
var grown = []struct{ member, kind, piece string }{
	{"text", "text_delta", "text"},
	{"thinking", "thinking_delta", "thinking"},
	{"signature", "signature_delta", "signature"},
	{"input", "input_json_delta", "partial_json"},
}

// appendBlock appends a block's events. One of a type without pieces is there from its start.
func appendBlock(dst []byte, place int, raw []byte) ([]byte, bool) {
	block, ok := jsonscan.ReadObject(raw)
	if !ok {
		return dst, false
	}
	index := jsonscan.Member{Key: "index", Value: strconv.AppendInt(nil, int64(place), 10)}
	var deltas [][]byte
	for _, g := range grown {
		value := block.Get(g.member)
		s := jsonscan.New(value)
		switch first := s.Peek(); {
		case first == '"' && g.member != "input":
			block.Set(g.member, []byte(`""`))
		case first == '{' && g.member == "input":
			block.Set(g.member, []byte("{}"))
			value = dialect.AppendString(nil, string(jsonscan.AppendLine(nil, value)))
		default:
			continue
		}
		if len(value) > 2 {
			deltas = append(deltas, append(append([]byte(`{"type":"`+g.kind+`","`+g.piece+`":`), value...), '}'))
		}
	}
	if cites, _ := jsonscan.ReadList(block.Get("citations")); len(cites) > 0 && block.Text("type") == "text" {
		block.Set("citations", []byte("[]"))
		for _, c := range cites {
			deltas = append(deltas, append(append([]byte(`{"type":"citations_delta","citation":`), c...), '}'))
		}
	}
	dst = appendEvent(dst, "content_block_start", index, jsonscan.Member{Key: "content_block", Value: block.JSON()})
	for _, d := range deltas {
		dst = appendEvent(dst, "content_block_delta", index, jsonscan.Member{Key: "delta", Value: d})
	}
	return appendEvent(dst, "content_block_stop", index), true
}
