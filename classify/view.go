package classify

import (
	"strconv"
	"strings"
)

// view looks at an answer that came with a success status, whole or in chunks of a stream, and
// gathers what S5 asks for: is there content, did it finish, and if empty, is that legitimate?
type view struct {
	a *answer
	d *document

	known    bool // the shape is that of a model's answer
	content  bool // a text, tool call, reasoning, refusal, image
	finished bool // a finish reason, or the end event of the dialect
	excused  bool // the finish reason or the usage explains an empty answer
	bad      bool // a fact was set that makes it a failure
}

// sound reports whether the answer is a good one, and says in facts why it is not.
func (v *view) sound() bool {
	if !v.known || v.content || v.excused {
		return true
	}
	if !v.a.has(isNoAnswer) {
		v.a.set(isHollow)
	}
	return false
}

// complete looks at one object: a whole answer, or one chunk.
func (v *view) complete(n *node) {
	d := v.d
	if r := d.get(n, "response"); r != nil && r.kind == nObject {
		v.complete(r)
	} else if r != nil && r.kind == nString && d.get(n, "done") != nil {
		v.known = true
		v.content = v.content || r.val != ""
	}
	if c := d.get(n, "choices"); c != nil && (c.kind == nArray || c.kind == nNull) {
		v.known = true
		if c.child == 0 {
			v.a.set(isNoAnswer)
		}
		d.each(c, v.choice)
	}
	if c := d.get(n, "candidates"); c != nil && c.kind == nArray {
		v.known = true
		if c.child == 0 {
			v.a.set(isNoAnswer)
		}
		d.each(c, v.candidate)
	}
	if b := d.path(n, "promptFeedback", "blockReason"); b != nil && b.val != "" && !v.content {
		v.bad = true
		v.a.set(isBlocked | isJSON)
		v.a.addCode(b.val, "promptFeedback.blockReason")
	}
	if t := d.get(n, "type"); t != nil && t.val == "message" {
		v.known = true
		v.blocks(d.get(n, "content"))
		v.reason(d.get(n, "stop_reason"))
	}
	if o := d.get(n, "object"); o != nil && o.val == "response" {
		v.known = true
		v.items(d.get(n, "output"))
		switch s := d.get(n, "status"); {
		case s == nil:
		case s.val == "incomplete":
			v.finished, v.excused = true, true
		case s.val == "completed":
			v.finished = true
		case s.val == "queued" || s.val == "in_progress":
			v.excused = true
		}
	}
	if m := d.get(n, "message"); m != nil && m.kind == nObject && d.get(n, "done") != nil {
		v.known = true
		v.part(m)
	}
	if dn := d.get(n, "done"); dn != nil && dn.val == "true" {
		v.finished = true
		v.reason(d.get(n, "done_reason"))
		v.usage(n)
	}
	for _, k := range [...]string{"usage", "usageMetadata"} {
		v.usage(d.get(n, k))
	}
	v.event(n)
}

// event looks at the chunk shapes that are told apart by a type.
func (v *view) event(n *node) {
	d := v.d
	typ := ""
	if t := d.get(n, "type"); t != nil {
		typ = t.val
	} else if t := d.get(n, ":event-type"); t != nil {
		typ = t.val
		n = cmpNode(d.get(n, "payload"), n)
	}
	switch {
	case typ == "content_block_delta", typ == "contentBlockDelta":
		v.known = true
		v.part(d.get(n, "delta"))
	case typ == "content_block_start":
		v.known = true
		if t := d.path(n, "content_block", "type"); t != nil && t.val != "text" && t.val != "thinking" {
			v.content = true
		}
	case typ == "message_delta":
		v.known = true
		v.reason(d.path(n, "delta", "stop_reason"))
	case typ == "messageStop":
		v.known = true
		v.reason(d.get(n, "stopReason"))
	case typ == "message_start":
		v.known = true
		// Its one output token is a placeholder, so the usage excuses nothing yet.
		excused := v.excused
		v.usage(d.path(n, "message", "usage"))
		v.excused = excused
	case typ == "message_stop":
		v.known, v.finished = true, true
	case strings.HasPrefix(typ, "response."):
		v.known = true
		switch {
		case strings.HasSuffix(typ, ".delta"):
			v.content = v.content || truthy(d.get(n, "delta"))
		case typ == "response.completed", typ == "response.done":
			v.finished = true
		case typ == "response.incomplete":
			v.finished, v.excused = true, true
		}
	}
}

func cmpNode(a, b *node) *node {
	if a != nil {
		return a
	}
	return b
}

// choice looks at one of OpenAI's choices, whole or delta.
func (v *view) choice(c *node) {
	d := v.d
	v.part(d.get(c, "message"))
	v.part(d.get(c, "delta"))
	if t := d.get(c, "text"); truthy(t) {
		v.content = true
	}
	f := d.get(c, "finish_reason")
	v.reason(f)
	if f != nil && isFailure(f.val) {
		v.bad = true
		v.a.set(isErrFinish)
	}
	if e := d.get(c, "error"); truthy(e) {
		v.bad = true
		v.a.set(isJSON)
		v.a.collect(d, e, "choices.error.", 1)
	}
}

// part looks at a message or delta for anything that a client would call content.
func (v *view) part(m *node) {
	if m == nil || m.kind != nObject {
		return
	}
	for _, k := range [...]string{"content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning", "thinking", "audio", "images", "text", "partial_json", "toolUse", "reasoningContent", "signature"} {
		if truthy(v.d.get(m, k)) {
			v.content = true
			return
		}
	}
}

// isFailure reports whether a finish reason says that the service gave up.
func isFailure(reason string) bool {
	switch strings.ToLower(reason) {
	case "error", "network_error", "insufficient_system_resource", "abort":
		return true
	}
	return false
}

func (v *view) blocks(c *node) {
	v.d.each(c, func(b *node) {
		if t := v.d.get(b, "type"); t != nil && t.val != "text" {
			v.content = true
		}
		v.part(b)
	})
}

func (v *view) items(o *node) {
	v.d.each(o, func(it *node) {
		if t := v.d.get(it, "type"); t != nil && t.val != "message" {
			v.content = true
		}
		v.blocks(v.d.get(it, "content"))
	})
}

func (v *view) candidate(c *node) {
	parts := v.d.path(c, "content", "parts")
	v.d.each(parts, func(p *node) {
		if f := v.d.first(p); f != nil && (f.kind != nString || f.val != "" || f.next != 0) {
			v.content = true
		}
	})
	f := v.d.get(c, "finishReason")
	if f == nil || f.val == "" {
		return
	}
	switch f.val {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE":
		if !v.content {
			v.bad = true
			v.a.set(isBadCall)
			v.a.addCode(f.val, "finishReason")
		}
		v.finished = true
	case "STOP", "OTHER", "FINISH_REASON_UNSPECIFIED":
		v.finished = true
	default:
		v.finished, v.excused = true, true
	}
}

// reason reads a finish reason: length, tool calls and content filters explain an empty answer.
func (v *view) reason(f *node) {
	if f == nil || f.val == "" || f.kind != nString {
		return
	}
	v.finished = true
	switch strings.ToLower(f.val) {
	case "stop", "end_turn", "error", "stop_sequence", "eos", "eos_token", "complete":
	default:
		v.excused = true
	}
}

// usage reads output tokens: an answer that was paid for was given.
func (v *view) usage(u *node) {
	if u == nil || u.kind != nObject {
		return
	}
	for _, k := range [...]string{"completion_tokens", "output_tokens", "candidatesTokenCount", "thoughtsTokenCount", "eval_count"} {
		if t := v.d.get(u, k); t != nil && t.kind == nNumber {
			if n, err := strconv.ParseFloat(t.val, 64); err == nil && n > 0 {
				v.excused = true
			}
		}
	}
	for _, k := range [...]string{"prompt_tokens", "input_tokens", "promptTokenCount", "prompt_eval_count"} {
		if t := v.d.get(u, k); t != nil && t.kind == nNumber {
			if n, err := strconv.Atoi(t.val); err == nil {
				v.a.prompt = max(v.a.prompt, n)
			}
		}
	}
}
