package relay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"omniroute/classify"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
	"omniroute/resilience"
)

// Some upstreams answer whole whatever they are asked, and others always stream. Such an answer is as good as any: it
// is put into the shape that the client has asked for, member by member where both speak alike, else by way of the form between
// dialects.

// errShape says that an answer has no form in the shape that was asked for.
var errShape = errors.New("the answer cannot be told in the shape that was asked for")

const byteOrderMark = "\xef\xbb\xbf"

// answersWhole reports whether the answer to a streamed request is a whole one, and returns the body with what was
// looked at. Where the content type says events, firstContent finds out without a look ahead.
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
		case b == 0xef || b == 0xbb || b == 0xbf: // a byte order mark
		default:
			_ = in.UnreadByte() // it was just read
			_, lists := c.speaks.(dialect.Lister)
			return in, b == '{' || b == '[' && lists
		}
	}
}

// isWhole reports whether a stream's block is the beginning of a whole answer.
func isWhole(ev *sse.Event) bool {
	return !ev.HasData && len(ev.Name) == 0 && bytes.HasPrefix(bytes.TrimLeft(ev.Raw, " \t"), []byte("{"))
}

// notEvents reads a whole answer that is called a stream, from its first block on.
func (c *call) notEvents(ev *sse.Event) resilience.Verdict {
	c.whole = NewBuffer()
	for {
		c.whole.B = append(c.whole.B, ev.Raw...)
		next, err := c.events.Next()
		switch {
		case len(c.whole.B) > maxAnswer:
			return c.tooLarge()
		case err == io.EOF: //nolint:errorlint // a wrapped io.EOF is some layer's failure, not the end
			err = nil
		case err == nil:
			ev = next
			continue
		}
		c.held.Release() // comments at most
		c.events, c.stream, c.words, c.held = nil, nil, nil, nil
		return c.takeWhole(err)
	}
}

// readWhole reads an answer that is not streamed to its end and looks at it.
func (c *call) readWhole(body io.Reader, length int64) resilience.Verdict {
	c.whole = NewBuffer()
	err := c.whole.Fill(body, length, maxAnswer)
	if err == io.ErrShortBuffer { //nolint:errorlint // our own buffer's, never wrapped
		return c.tooLarge()
	}
	return c.takeWhole(err)
}

func (c *call) tooLarge() resilience.Verdict {
	return c.unusable(fmt.Sprintf("the answer is over %d MiB", maxAnswer>>20))
}

// takeWhole looks at a whole answer, or at what of it came before err.
func (c *call) takeWhole(err error) resilience.Verdict {
	if c.x.Asked.Operation != dialect.OpOther {
		c.whole.B = bytes.TrimPrefix(c.whole.B, []byte(byteOrderMark)) // some clients' JSON has no mark
	}
	text := c.whole.B
	streamed := c.x.Asked.Operation != dialect.OpOther && dialect.Sniff(c.header.Get("Content-Type"), text) == dialect.FormatSSE
	if streamed && c.x.Asked.Operation == dialect.OpGenerate {
		return c.gather(text, err)
	}
	if err != nil {
		return c.judge(classify.PhaseBody, text, &classify.CutError{Err: err})
	}
	if events, ok := c.unlisted(text); ok {
		if !c.x.Asked.Stream {
			return c.gather(events, nil)
		}
		c.whole.Release()
		c.whole = nil
		return c.firstContent(bytes.NewReader(events))
	}
	a := c.speaks.Inspect(c.asked, text)
	if a.Error || a.Malformed || a.Empty() || streamed {
		c.readFault(text)
		return c.judge(classify.PhaseBody, text, nil)
	}
	if err := c.inClientsWords(); err != nil {
		return c.unusable(err.Error())
	}
	c.keep(&a)
	return resilience.Verdict{}
}

// asStream makes a whole answer the stream that the client has asked for.
func (c *call) asStream() error {
	var out []byte
	if c.translation != nil {
		var err error
		if out, err = c.translation.Streamed(c.whole.B); err != nil {
			return err
		}
	} else {
		var ok bool
		if out, ok = c.x.Dialect.Streamed(c.asked, c.whole.B, c.x.ID); !ok {
			return errShape
		}
	}
	c.whole.B = append(c.whole.B[:0], out...)
	c.isStream, c.follower = true, nil
	return nil
}

// unlisted returns a list of events as the stream that it stands for.
func (c *call) unlisted(text []byte) ([]byte, bool) {
	l, ok := c.speaks.(dialect.Lister)
	if !ok || c.x.Asked.Operation != dialect.OpGenerate || !bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return nil, false
	}
	return l.Unlisted(text)
}

// gather makes a streamed answer the whole one that the client has asked for. cut is how its bytes ended, nil where they
// came to their end; an answer that is complete stays so.
func (c *call) gather(text []byte, cut error) resilience.Verdict {
	whole, stream, events := c.gatherer(), c.speaks.NewStream(c.asked), sse.NewReader(bytes.NewReader(text))
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
		switch {
		case o.Malformed && !stream.Answer().Content: // as in a stream, of which the client would have nothing yet
			return c.judge(classify.PhaseFirstEvent, text, nil)
		case !o.Malformed && !o.Skip:
			whole.Next(ev)
		}
		if o.Terminal {
			break
		}
	}
	a := stream.Answer()
	switch {
	case !a.Complete && (a.Content || cut != nil):
		return c.judge(classify.PhaseFirstEvent, text, &classify.CutError{Err: cut})
	case !a.Complete, a.Empty():
		return c.judge(classify.PhaseFirstEvent, text, nil)
	}
	out, ok := whole.Answer()
	if !ok {
		return c.unusable(errShape.Error())
	}
	c.whole.B = append(c.whole.B[:0], out...)
	c.header["Content-Type"] = jsonType
	c.keep(&a)
	return resilience.Verdict{}
}

func (c *call) gatherer() dialect.Gather {
	if c.translation != nil {
		return c.translation.Gather()
	}
	return c.x.Dialect.NewGather(c.x.ID)
}
