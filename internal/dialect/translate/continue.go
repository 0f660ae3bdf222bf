package translate

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// Continue returns a request in a dialect with the beginning of its answer in it, so that the
// upstream goes on from there. It reports false where that dialect, or this request, has no such
// thing.
func Continue(d dialect.Dialect, asked *dialect.Request, text string, p neutral.Prefill) (*dialect.Request, bool) {
	c, ok := d.(neutral.Continuer)
	if !ok {
		return nil, false
	}
	body, ok := c.Continue(asked.Body, text, p)
	if !ok {
		return nil, false
	}
	if len(asked.BodyModels) == 0 { // made by a translation for this one model
		out := *asked
		out.Body = body
		return &out, true
	}
	out, err := d.ReadRequest(asked.Path, body)
	return out, err == nil
}
