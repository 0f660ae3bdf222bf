package responses

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
)

// response is what a response object says to a judge.
type response struct {
	id, model         string
	object            string
	status, reason    string
	listed            bool // it has a list of output
	content, toolCall bool
	failed            bool
	usage             dialect.Usage
	count             bool // it has a number of input tokens
}

func scanResponse(s *jsonscan.Scanner) response {
	var r response
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "id":
			r.id = string(s.Text())
		case "object":
			r.object = string(s.Text())
		case "model":
			r.model = string(s.Text())
		case "status":
			r.status = string(s.Text())
		case "incomplete_details":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) == "reason" {
					r.reason = string(s.Text())
				} else {
					s.Skip()
				}
			}
		case "output":
			r.listed = s.Peek() == '['
			for ok := s.Array(); ok; ok = s.More(']') {
				p := scanItem(s)
				r.content = r.content || p.content
				r.toolCall = r.toolCall || p.toolCall
			}
		case "error":
			r.failed = jsonscan.Truthy(s.Skip())
		case "usage":
			r.usage = scanUsage(s)
		case "input_tokens":
			_, r.count = s.Int()
		default:
			s.Skip()
		}
	}
	return r
}

// finish returns why a response ended, in our words and its own.
func (r *response) finish(called bool) (dialect.Finish, string) {
	native := r.status
	if r.reason != "" {
		native += ":" + r.reason
	}
	switch r.reason {
	case "max_output_tokens", "max_tokens":
		return dialect.FinishLength, native
	case "content_filter":
		return dialect.FinishFilter, native
	}
	switch {
	case r.status == "failed", r.status == "cancelled":
		return dialect.FinishError, native
	case r.status == "incomplete":
		return dialect.FinishOther, native
	case called:
		return dialect.FinishToolCalls, native
	}
	return dialect.FinishStop, native
}

// part is what an item of the output holds.
type part struct{ content, toolCall bool }

// scanItem reads an item: a message, a thought, a call of a function or of the upstream's own tool.
func scanItem(s *jsonscan.Scanner) part {
	var kind []byte
	var said, named bool
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "type":
			kind = s.Text()
		case "name":
			named = s.NonEmptyString()
		case "content", "summary":
			for ok := s.Array(); ok; ok = s.More(']') {
				for ok := s.Object(); ok; ok = s.More('}') {
					switch key := s.Key(); string(key) {
					case "text", "refusal":
						said = s.NonEmptyString() || said
					default:
						s.Skip()
					}
				}
			}
		default:
			s.Skip()
		}
	}
	switch string(kind) {
	case "message", "reasoning":
		return part{content: said}
	case "function_call", "custom_tool_call":
		return part{content: named, toolCall: named}
	case "":
		return part{}
	}
	return part{content: true} // web_search_call, image_generation_call, …
}

func scanUsage(s *jsonscan.Scanner) dialect.Usage {
	var u dialect.Usage
	count := func(to *int64) {
		if n, ok := s.Int(); ok && n >= 0 {
			*to, u.Known = n, true
		}
	}
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "input_tokens", "prompt_tokens":
			count(&u.Input)
		case "output_tokens", "completion_tokens":
			count(&u.Output)
		case "input_tokens_details", "output_tokens_details":
			for ok := s.Object(); ok; ok = s.More('}') {
				switch key := s.Key(); string(key) {
				case "cached_tokens":
					count(&u.CacheRead)
				case "cache_write_tokens":
					count(&u.CacheWrite)
				case "reasoning_tokens":
					count(&u.Reasoning)
				default:
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
	return u
}

// Inspect judges one complete body.
func (Dialect) Inspect(asked *dialect.Request, body []byte) dialect.Answer {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	s := jsonscan.New(body)
	object := s.Peek() == '{'
	var r response
	if object {
		if r = scanResponse(&s); s.End() != nil {
			r, object = response{}, false
		}
	}
	a := dialect.Answer{Content: r.content, ToolCall: r.toolCall, ID: r.id, Model: r.model, Usage: r.usage}
	switch asked.Operation {
	case dialect.OpOther:
		a.Content = len(body) > 0
		r.failed = r.failed && r.id == "" // jobs tell of errors of their own
		a.Error = r.failed
	case dialect.OpCount:
		a.Content, a.Malformed = r.count, !r.count
		a.Error = r.failed && !r.count
	default:
		a.Finish, a.NativeFinish = r.finish(r.toolCall)
		if !r.listed && r.status == "" {
			a.Finish, a.NativeFinish = dialect.FinishNone, ""
		}
		running := r.status == "queued" || r.status == "in_progress" // in the background
		a.Content = a.Content || running && r.id != ""
		a.Malformed = !object || !r.listed && !running
		a.Error = r.failed || a.Finish == dialect.FinishError || r.object == "error"
	}
	if a.Error {
		a.Envelope, a.Malformed = body, false
	}
	a.Complete = !a.Error && !a.Malformed
	return a
}
