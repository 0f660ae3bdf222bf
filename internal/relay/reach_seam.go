package relay

import (
	"bytes"
	"io"

	"omniroute/classify"
	"omniroute/internal/dialect/seam"
	"omniroute/internal/dialect/sse"
	"omniroute/resilience"
)

// reachSeam reads the stream of an attempt that is to finish an answer, up to what is new to the
// client. Its first content has to come in time as always; from then on it is watched like a
// stream that passes, however long it says again what the client has.
func (c *call) reachSeam(body io.Reader) resilience.Verdict {
	r := c.recovery
	c.phase.Store(uint32(classify.PhaseFirstEvent))
	c.events = sse.NewReader(body)
	c.stream = c.speaks.NewStream(c.asked)
	s := seam.Restarted(r.text)
	if c.goesOn {
		s = seam.Continued(r.text)
	}
	join := seam.NewJoin(s, r.spent)
	translation := c.translation
	if translation == nil {
		translation = r.same(c)
	}
	c.words = translation.Resume(r.writer, join)
	for {
		ev, err := c.events.Next()
		if err == io.EOF { //nolint:errorlint // a wrapped io.EOF is some layer's failure, not the end
			return c.judge(c.phaseNow(), nil, &classify.CutError{Content: c.pumping})
		}
		if err != nil {
			return c.judge(c.phaseNow(), nil, &classify.CutError{Content: c.pumping, Err: err})
		}
		o := c.stream.Observe(ev)
		c.last = o
		switch {
		case o.Error:
			c.readFault(o.Envelope)
			return c.judge(c.phaseNow(), ev.Raw, nil)
		case o.Malformed:
			return c.judge(classify.PhaseFirstEvent, ev.Raw, nil) // what the client has must not be told from half of it
		case o.Skip:
			continue
		}
		c.translated = c.words.Next(ev)
		c.complete = c.stream.Answer().Complete
		switch join.State() {
		case seam.Joined:
			return resilience.Verdict{}
		case seam.Broken:
			return unfitting()
		}
		if o.Terminal {
			return c.judge(c.phaseNow(), nil, &classify.CutError{Content: c.pumping})
		}
		if o.Content {
			if c.watch.content(); !c.pumping {
				c.streams()
			}
		}
	}
}

// wholeToSeam takes a whole answer to what is to finish a stream, as the stream that it is told as in its own dialect.
func (c *call) wholeToSeam(body io.Reader) resilience.Verdict {
	whole := NewBuffer()
	defer whole.Release()
	err := whole.Fill(body, -1, maxAnswer)
	text := bytes.TrimPrefix(whole.B, []byte(byteOrderMark))
	if err != nil {
		return c.judge(classify.PhaseBody, text, &classify.CutError{Err: err})
	}
	if events, ok := c.unlisted(text); ok {
		return c.reachSeam(bytes.NewReader(events))
	}
	if a := c.speaks.Inspect(c.asked, text); a.Error || a.Malformed || a.Empty() {
		c.readFault(text)
		return c.judge(classify.PhaseBody, text, nil)
	}
	asked := *c.asked
	asked.IncludeUsage = true // it is counted, whoever asked for it
	stream, ok := c.speaks.Streamed(&asked, text, c.x.ID)
	if !ok {
		return c.unusable(errShape.Error())
	}
	return c.reachSeam(bytes.NewReader(stream))
}
