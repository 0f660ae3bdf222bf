package seam

import (
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// Follower keeps what a client gets of one answer, so that another attempt can finish it. It is
// not safe for use by several goroutines.
type Follower struct {
	Sent
	reader neutral.EventReader // of a stream that passes through
	tail   neutral.Tail
	events []neutral.Event
}

// Follow begins to follow a stream that passes through as it comes.
func Follow(d neutral.Codec) *Follower {
	return &Follower{reader: d.NewEventReader(&neutral.Context{Request: &neutral.Request{}}), tail: d.NewTail()}
}

// Passed takes in an event that the client has got as it came.
func (f *Follower) Passed(ev *sse.Event) {
	if f.lost != "" || !ev.HasData {
		return
	}
	if why := f.tail.Follow(ev); why != "" {
		f.Lose(why)
		return
	}
	f.events = f.reader.Read(ev, f.events[:0])
	f.Wrote(f.events)
}

// Wrote takes in events that a writer has put into the client's words.
func (f *Follower) Wrote(events []neutral.Event) {
	for i := range events {
		f.Note(&events[i])
	}
}

// Writer returns what goes on with a stream that passed through.
func (f *Follower) Writer(c *neutral.Context) neutral.EventWriter { return f.tail.Writer(c, f.Text()) }
