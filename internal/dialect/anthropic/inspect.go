package anthropic

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
)

// Inspect judges one complete body.
func (Dialect) Inspect(r *dialect.Request, body []byte) dialect.Answer {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	var a dialect.Answer
	var e event
	var kind []byte
	var listed, counted bool
	s := jsonscan.New(body)
	object := s.Peek() == '{'
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "type":
			kind = s.Text()
		case "error":
			e.failed = jsonscan.Truthy(s.Skip()) || e.failed
		case "content":
			listed = s.Peek() == '['
			for ok := s.Array(); ok; ok = s.More(']') {
				e.scanBlock(&s)
			}
		case "id":
			a.ID = string(s.Text())
		case "model":
			a.Model = string(s.Text())
		case "stop_reason":
			e.stopReason = string(s.Text())
		case "usage":
			scanUsage(&s, &e.usage)
		case "input_tokens":
			_, counted = s.Int()
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		e, a, object = event{}, dialect.Answer{}, false
	}
	a.Content, a.ToolCall = e.content, e.toolCall
	a.NativeFinish, a.Finish = e.stopReason, finishOf(e.stopReason)
	a.Usage = e.usage.neutral()
	switch r.Operation {
	case dialect.OpOther:
		e.failed = e.failed && a.ID == ""
		a.Content = !e.failed && len(body) > 0
	case dialect.OpCount:
		a.Content = counted
		a.Malformed = !counted
	default:
		a.Malformed = !object || !listed
	}
	if e.failed && !a.Content || string(kind) == "error" {
		a.Error, a.Envelope, a.Malformed = true, body, false
	}
	a.Complete = !a.Error && !a.Malformed
	return a
}
