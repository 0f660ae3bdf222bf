package relay

import (
	"bufio"
	"bytes"
	"io"

	"omniroute/classify"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
	"omniroute/internal/dialect/translate"
	"omniroute/resilience"
)

// Some upstreams answer whole whatever they are asked, and others always stream. Such an answer is as good as any: it
// is put into the shape that the client has asked for, by way of the form between dialects. What that form cannot hold
// (several choices) is another target's to answer.

// answersWhole reports whether the answer to a streamed request is a whole one, and returns the body with what was
// looked at. The content type decides where it says events, the first byte where it does not: some send those as JSON.
func (c *call) answersWhole(body io.Reader) (io.Reader, bool) {
	if c.x.Asked.Operation != dialect.OpGenerate || isEvents(c.header) {
		return body, false
	}
	in := bufio.NewReaderSize(body, 512)
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil: // the next read says it again
			return in, false
		case b == ' ' || b == '\t' || b == '\r' || b == '\n': // keeps a connection alive until the answer is there
		default:
			_ = in.UnreadByte() // it was just read
			return in, b == '{'
		}
	}
}

// asStream makes a whole answer the stream that the client has asked for.
func (c *call) asStream() error {
	t, err := c.answers()
	if err != nil {
		return err
	}
	out, err := t.Streamed(c.whole.B)
	if err != nil {
		return err
	}
	c.whole.B = append(c.whole.B[:0], out...)
	c.isStream, c.follower = true, nil
	return nil
}

// gather makes a streamed answer the whole one that the client has asked for.
func (c *call) gather(text []byte) resilience.Verdict {
	t, err := c.answers()
	if err != nil {
		return c.unusable(err.Error())
	}
	whole, stream, events := t.Gather(), c.speaks.NewStream(c.asked), sse.NewReader(bytes.NewReader(text))
	for {
		ev, err := events.Next()
		if err == io.EOF { //nolint:errorlint // a wrapped io.EOF is some layer's failure, not the end
			break
		}
		if err != nil {
			return c.judge(classify.PhaseFirstEvent, text, &classify.CutError{Err: err})
		}
		o := stream.Observe(ev)
		if o.Error {
			c.readFault(o.Envelope)
			return c.judge(classify.PhaseFirstEvent, ev.Raw, nil)
		}
		if !o.Malformed && !o.Skip {
			whole.Next(ev)
		}
		if o.Terminal {
			break
		}
	}
	a := stream.Answer()
	switch {
	case !a.Complete && a.Content:
		return c.judge(classify.PhaseFirstEvent, text, &classify.CutError{})
	case !a.Complete, a.Empty():
		return c.judge(classify.PhaseFirstEvent, text, nil)
	}
	out := whole.Answer()
	c.whole.B = append(c.whole.B[:0], out...)
	c.header["Content-Type"] = jsonType
	c.keep(&a)
	return resilience.Verdict{}
}

// answers returns what puts the upstream's answer into the client's words, also where both speak alike.
func (c *call) answers() (*translate.Translation, error) {
	if c.translation != nil {
		return c.translation, nil
	}
	source, err := translate.Read(c.x.Dialect, c.x.Asked)
	if err != nil {
		return nil, err
	}
	return source.Same(translate.Options{Model: c.up.Model, Now: c.x.started, ID: c.x.ID}), nil
}
