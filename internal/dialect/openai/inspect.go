package openai

import (
	"bytes"

	"omniroute/internal/dialect"
)

// Inspect judges one complete body. A JSON text that is not an answer to what was asked is
// malformed; for endpoints that we do not know everything is an answer that is no error.
func (Dialect) Inspect(r *dialect.Request, body []byte) dialect.Answer {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	c := scanChunk(body, false)
	a := dialect.Answer{
		Content: c.content, ToolCall: c.toolCall,
		Finish: c.end.finish, NativeFinish: c.end.native,
		Usage: c.usage, Model: string(c.model),
	}
	switch r.Operation {
	case dialect.OpOther:
		// Jobs and files may carry an "error" of their own; audio is not even JSON.
		c.failed = c.failed && !c.entity
		a.Content = !c.failed && len(body) > 0
	case dialect.OpEmbed:
		a.Content = c.vectors
		a.Malformed = !c.object || !c.vectors && c.usage.Output > 0 // tokens excuse no answer without vectors
	default:
		a.Malformed = !c.hasChoices && !c.failed
	}
	if a.Malformed && listsError(body) {
		c.failed, c.envelope = true, body
	}
	// An error beside a whole answer is a remark on it, unless the upstream says that it
	// gave up in the middle.
	if c.failed && (!a.Content || a.Finish == dialect.FinishError) {
		a.Error, a.Envelope, a.Malformed = true, c.envelope, false
	}
	a.Complete = !a.Error && !a.Malformed
	return a
}
