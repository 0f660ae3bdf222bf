package responses

import (
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

var _ dialect.Reshaper = Dialect{}

// Streamed implements dialect.Reshaper. A response that still runs in the background has no end to tell.
func (Dialect) Streamed(_ *dialect.Request, body []byte, _ string) ([]byte, bool) {
	whole, ok := jsonscan.ReadObject(body)
	output, listed := jsonscan.ReadList(whole.Get("output"))
	end := "response.completed"
	switch whole.Text("status") {
	case "incomplete":
		end = "response.incomplete"
	case "completed", "":
	default:
		return nil, false
	}
	if !ok || !listed {
		return nil, false
	}
	begun := whole.Clone()
	for _, m := range []jsonscan.Member{{Key: "status", Value: []byte(`"in_progress"`)}, {Key: "output", Value: []byte("[]")}, {Key: "usage", Value: []byte("null")}} {
		begun.Set(m.Key, m.Value)
	}
	begun.Set("incomplete_details", []byte("null"))
	w := reshaped{}
	w.event("response.created", jsonscan.Member{Key: "response", Value: begun.JSON()})
	w.event("response.in_progress", jsonscan.Member{Key: "response", Value: begun.JSON()})
	for i, raw := range output {
		if it, ok := jsonscan.ReadObject(raw); ok {
			w.item(i, it)
		}
	}
	w.event(end, jsonscan.Member{Key: "response", Value: whole.JSON()})
	return w.out, true
}

// reshaped is a stream that is made of a whole response.
type reshaped struct {
	out    []byte
	number int64
}

func (w *reshaped) event(kind string, members ...jsonscan.Member) {
	ev := jsonscan.Object{{Key: "type", Value: dialect.AppendString(nil, kind)}, {Key: "sequence_number", Value: strconv.AppendInt(nil, w.number, 10)}}
	w.number++
	w.out = sse.Append(w.out, kind, append(ev, members...).JSON())
}

// item tells an item in the pieces of its type. One of a type without pieces is there from its start.
func (w *reshaped) item(place int, it jsonscan.Object) {
	at := jsonscan.Member{Key: "output_index", Value: strconv.AppendInt(nil, int64(place), 10)}
	where := []jsonscan.Member{{Key: "item_id", Value: it.Get("id")}, at}
	if where[0].Value == nil {
		where[0].Value = []byte(`""`)
	}
	begun := it.Clone()
	if begun.Get("status") != nil {
		begun.Set("status", []byte(`"in_progress"`))
	}
	kind, grows := it.Text("type"), ""
	switch kind {
	case "message":
		grows = "content"
		begun.Set(grows, []byte("[]"))
	case "reasoning":
		grows = "summary"
		begun.Set(grows, []byte("[]"))
		begun.Delete("encrypted_content")
	case "function_call":
		grows = "arguments"
		begun.Set(grows, []byte(`""`))
	case "custom_tool_call":
		grows = "input"
		begun.Set(grows, []byte(`""`))
	}
	w.event("response.output_item.added", at, jsonscan.Member{Key: "item", Value: begun.JSON()})
	switch grows {
	case "content", "summary":
		parts, _ := jsonscan.ReadList(it.Get(grows))
		for i, raw := range parts {
			index := jsonscan.Member{Key: grows + "_index", Value: strconv.AppendInt(nil, int64(i), 10)}
			w.part(grows, append(where[:2:2], index), raw)
		}
	case "arguments":
		w.pieces("response.function_call_arguments", grows, where, it.Get(grows))
	case "input":
		w.pieces("response.custom_tool_call_input", grows, where, it.Get(grows))
	}
	w.event("response.output_item.done", at, jsonscan.Member{Key: "item", Value: it.JSON()})
}

// part tells a part of a message, or of the summary of a thought.
func (w *reshaped) part(of string, where []jsonscan.Member, raw []byte) {
	part, ok := jsonscan.ReadObject(raw)
	if !ok {
		return
	}
	added, member, pieces := "response.content_part", "text", "response.output_text"
	switch {
	case of == "summary":
		added, pieces = "response.reasoning_summary_part", "response.reasoning_summary_text"
	case part.Text("type") == "refusal":
		member, pieces = "refusal", "response.refusal"
	}
	begun := part.Clone()
	begun.Set(member, []byte(`""`))
	for _, key := range []string{"annotations", "logprobs"} {
		if begun.Get(key) != nil {
			begun.Set(key, []byte("[]"))
		}
	}
	w.event(added+".added", append(where[:3:3], jsonscan.Member{Key: "part", Value: begun.JSON()})...)
	more := []jsonscan.Member(nil)
	if pieces == "response.output_text" {
		more = []jsonscan.Member{{Key: "logprobs", Value: []byte("[]")}}
		if l := part.Get("logprobs"); jsonscan.Truthy(l) {
			more[0].Value = l
		}
	}
	w.pieces(pieces, member, where, part.Get(member), more...)
	w.event(added+".done", append(where[:3:3], jsonscan.Member{Key: "part", Value: part.JSON()})...)
}

// pieces tells a text in one piece, and that it is over.
func (w *reshaped) pieces(kind, member string, where []jsonscan.Member, text []byte, more ...jsonscan.Member) {
	if len(text) == 0 || text[0] != '"' {
		return
	}
	n := len(where)
	if len(text) > len(`""`) {
		w.event(kind+".delta", append(append(where[:n:n], jsonscan.Member{Key: "delta", Value: text}), more...)...)
	}
	w.event(kind+".done", append(append(where[:n:n], jsonscan.Member{Key: member, Value: text}), more...)...)
}
