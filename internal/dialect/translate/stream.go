package translate

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/seam"
	"omniroute/internal/dialect/sse"
)

// Stream turns an upstream's events into the client's. It is not safe for use by several
// goroutines.
type Stream struct {
	t      *Translation
	reader neutral.EventReader
	writer neutral.EventWriter
	events []neutral.Event
	buf    []byte

	follower *seam.Follower // hears what the client gets, if there is one
	join     *seam.Join     // of a stream that goes on with another one
}

// Stream begins to translate a streamed answer.
func (t *Translation) Stream() *Stream {
	return &Stream{t: t, reader: t.to.NewEventReader(&t.context), writer: t.from.NewEventWriter(&t.context)}
}

// NewFollower begins to follow a stream that passes through in a dialect, nil where there is no
// such dialect.
func NewFollower(d dialect.Dialect) *seam.Follower {
	c := codecOf(d.Name())
	if c == nil {
		return nil
	}
	return seam.Follow(c)
}

// FollowedBy tells a follower, if there is one, what the client gets from now on.
func (s *Stream) FollowedBy(f *seam.Follower) *Stream {
	s.follower = f
	return s
}

// Resume begins to translate an answer that goes on with one that broke off: w is where the
// client's stream is, and j lets through what is new.
func (t *Translation) Resume(w neutral.EventWriter, j *seam.Join) *Stream {
	return &Stream{t: t, reader: t.to.NewEventReader(&t.context), writer: w, join: j}
}

// Writer returns what writes the client's stream.
func (s *Stream) Writer() neutral.EventWriter { return s.writer }

// Next takes an upstream's event, which its dialect has found to be neither an error nor
// malformed, and returns the bytes of the client's events that it makes, none for most events
// without content. They are valid until the next call.
func (s *Stream) Next(ev *sse.Event) []byte {
	s.events = s.reader.Read(ev, s.events[:0])
	return s.write(s.buf[:0])
}

// End returns the bytes that complete the client's stream. It is to be called once, when the
// upstream's dialect says that the answer is complete and nothing of it can follow: only then
// are the finish reason and the usage known together.
func (s *Stream) End() []byte {
	s.events = s.reader.End(s.events[:0])
	s.buf = s.writer.End(s.write(s.buf[:0]))
	return s.buf
}

// ErrorEvent returns the bytes that end the client's stream after a failure, in place of End.
// Calls that are not whole stay open.
func (s *Stream) ErrorEvent(r *dialect.ErrorReport) []byte {
	s.buf = s.writer.Fail(s.buf[:0], r)
	return s.buf
}

func (s *Stream) write(dst []byte) []byte {
	events := s.events
	if s.join != nil {
		events = s.join.Through(events)
	}
	if s.follower != nil {
		s.follower.Wrote(events)
	}
	for i := range events {
		e := &events[i]
		if e.Kind == neutral.EventCall {
			s.t.own(&e.Name, &e.Custom)
		}
		dst = s.writer.Write(dst, e)
	}
	s.buf = dst
	return dst
}
