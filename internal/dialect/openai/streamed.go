package openai

import (
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

var _ dialect.Reshaper = Dialect{}

// Streamed implements dialect.Reshaper: one chunk says all, the next how it ended, and the last what it cost where the
// client has asked for that.
func (d Dialect) Streamed(r *dialect.Request, body []byte, id string) ([]byte, bool) {
	whole, ok := jsonscan.ReadObject(body)
	choices, listed := jsonscan.ReadList(whole.Get("choices"))
	if !ok || !listed || len(choices) == 0 {
		return nil, false
	}
	usage := whole.Get("usage")
	whole.Delete("usage")
	if whole.Text("object") == "chat.completion" {
		whole.Set("object", []byte(`"chat.completion.chunk"`))
	}
	says, ends := make([][]byte, len(choices)), make([][]byte, len(choices))
	ids := callIDs{id: id}
	for i, raw := range choices {
		choice, ok := jsonscan.ReadObject(raw)
		if !ok {
			return nil, false
		}
		says[i], ends[i] = splitChoice(choice, i, &ids)
	}
	whole.Set("choices", jsonscan.AppendList(nil, says))
	out := sse.Append(nil, "", whole.JSON())
	short := jsonscan.Object{}
	for _, key := range []string{"id", "object", "created", "model"} {
		if v := whole.Get(key); v != nil {
			short.Set(key, v)
		}
	}
	short.Set("choices", jsonscan.AppendList(nil, ends))
	out = sse.Append(out, "", short.JSON())
	if r.IncludeUsage && jsonscan.Truthy(usage) {
		short.Set("choices", []byte("[]"))
		short.Set("usage", usage)
		out = sse.Append(out, "", short.JSON())
	}
	return append(out, d.Terminator()...), true
}

// splitChoice returns what the chunks of a whole choice say of it: all of it, and how it ended.
func splitChoice(choice jsonscan.Object, place int, ids *callIDs) (says, ends []byte) {
	index := choice.Get("index")
	if index == nil {
		index = strconv.AppendInt(nil, int64(place), 10)
	}
	end := jsonscan.Object{{Key: "index", Value: index}}
	reason := choice.Get("finish_reason")
	called := false
	if choice.Get("text") != nil {
		end.Set("text", []byte(`""`))
	} else {
		said := choice.Get("message")
		if !jsonscan.Truthy(said) {
			said = choice.Get("delta")
		}
		message, _ := jsonscan.ReadObject(said)
		called = indexCalls(&message, ids)
		choice.Delete("message")
		choice.Set("delta", message.JSON())
		end.Set("delta", []byte("{}"))
	}
	if choice.Text("finish_reason") == "" { // the answer is whole all the same
		if reason = []byte(`"stop"`); called {
			reason = []byte(`"tool_calls"`)
		}
	}
	choice.Set("index", index)
	choice.Set("finish_reason", []byte("null"))
	end.Set("finish_reason", reason)
	return choice.JSON(), end.JSON()
}

// indexCalls makes of a message's calls what a stream's have to be, and reports whether there are any.
func indexCalls(message *jsonscan.Object, ids *callIDs) bool {
	calls, _ := jsonscan.ReadList(message.Get("tool_calls"))
	for i, raw := range calls {
		if call, ok := jsonscan.ReadObject(raw); ok {
			ids.complete(&call)
			calls[i] = append(append(strconv.AppendInt([]byte(`{"index":`), int64(i), 10), ','), call.JSON()[1:]...)
		}
	}
	if len(calls) > 0 {
		message.Set("tool_calls", jsonscan.AppendList(nil, calls))
	}
	return len(calls) > 0
}

// callIDs makes the ids of calls that an upstream has given none.
type callIDs struct {
	id   string
	made int
}

// complete gives a call what clients need and some services leave out.
func (c *callIDs) complete(call *jsonscan.Object) {
	call.Delete("index")
	if call.Text("id") == "" {
		c.made++
		call.Set("id", dialect.AppendString(nil, "call_"+c.id+"_"+strconv.Itoa(c.made)))
	}
	function, ok := jsonscan.ReadObject(call.Get("function"))
	if !ok {
		return
	}
	if call.Text("type") == "" {
		call.Set("type", []byte(`"function"`))
	}
	var args arguments
	if _ = args.UnmarshalJSON(function.Get("arguments")); args == "" {
		args = "{}"
	}
	function.Set("arguments", dialect.AppendString(nil, string(args)))
	call.Set("function", function.JSON())
}
