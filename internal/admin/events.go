package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"omniroute/resilience"
)

// hub hands events to those who watch, and keeps the last ones for those who come back.
// Numbers go on where the last process left off, since they begin with the time of the start: a
// watcher that comes back after a restart gets all that has happened since.
type hub struct {
	mu      sync.Mutex
	last    int64
	kept    []numbered
	next    int
	backlog int
	readers map[*reader]struct{}
	closed  bool
}

type numbered struct {
	id    int64
	event resilience.Event
}

// reader is one who watches. Its channel is closed when it is dropped or the hub ends.
type reader struct {
	events chan numbered
	slow   bool // dropped because it did not keep up; under the hub's lock until the channel is closed
}

func newHub(keep, backlog int, now time.Time) *hub {
	return &hub{last: now.UnixMilli() * 1000, kept: make([]numbered, 0, keep), backlog: backlog, readers: map[*reader]struct{}{}}
}

// publish takes in an event. It never waits for a reader.
func (h *hub) publish(ev resilience.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	n := numbered{h.last, ev}
	if len(h.kept) < cap(h.kept) {
		h.kept = append(h.kept, n)
	} else {
		h.kept[h.next] = n
		h.next = (h.next + 1) % len(h.kept)
	}
	for r := range h.readers {
		select {
		case r.events <- n:
		default:
			r.slow = true
			delete(h.readers, r)
			close(r.events)
		}
	}
}

// subscribe returns what has happened after the given point and a reader of all that follows.
func (h *hub) subscribe(after func(numbered) bool) ([]numbered, *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var past []numbered
	for _, n := range slices.Concat(h.kept[h.next:], h.kept[:h.next]) {
		if after(n) {
			past = append(past, n)
		}
	}
	r := &reader{events: make(chan numbered, h.backlog)}
	if h.closed {
		close(r.events)
	} else {
		h.readers[r] = struct{}{}
	}
	return past, r
}

func (h *hub) leave(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, r)
}

// close ends every stream.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for r := range h.readers {
		delete(h.readers, r)
		close(r.events)
	}
}

// writeTime is how long one event may take to be written to a reader.
const writeTime = 10 * time.Second

// events streams transitions: after ?since= or Last-Event-ID first those that are kept, then each
// as it happens.
func (a *Admin) events(w http.ResponseWriter, r *http.Request) error {
	after, err := since(r)
	if err != nil {
		return err
	}
	past, reader := a.hub.subscribe(after)
	defer a.hub.leave(reader)
	s := &eventStream{w: w, c: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return nil
	}
	s.comment("events of the gateway")
	for _, n := range past {
		s.event(n)
	}
	s.flush()
	beat := time.NewTicker(a.o.Heartbeat)
	defer beat.Stop()
	for s.err == nil {
		select {
		case n, ok := <-reader.events:
			if !ok {
				if reader.slow {
					s.comment("dropped: the events came faster than they were read; come back with the header Last-Event-ID")
				} else {
					s.comment("the gateway is shutting down")
				}
				s.flush()
				return nil
			}
			s.event(n)
		case <-beat.C:
			s.comment("alive")
		case <-r.Context().Done():
			return nil
		}
		s.flush()
	}
	return nil // the reader has gone
}

// since reads where a watcher wants to begin: the number of the last event that it has seen, or a
// time. Without either it gets what happens from now on.
func since(r *http.Request) (func(numbered) bool, error) {
	text, name := r.Header.Get("Last-Event-ID"), "Last-Event-ID"
	for key, values := range r.URL.Query() {
		if key != "since" {
			return nil, invalid("unknown parameter %q; the only one is since", shown(key))
		}
		if text == "" {
			text, name = values[0], "since"
		}
	}
	if text == "" {
		return func(numbered) bool { return false }, nil
	}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil && id >= 0 {
		return func(n numbered) bool { return n.id > id }, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return func(n numbered) bool { return n.event.At.After(at) }, nil
	}
	return nil, invalid("%s %q is neither an event's id nor a time; write 0 for all that are kept, an id, or a time such as 2026-01-02T15:04:05Z", name, shown(text))
}

// eventStream writes server-sent events and remembers the first error.
type eventStream struct {
	w   http.ResponseWriter
	c   *http.ResponseController
	buf bytes.Buffer
	err error
}

func (s *eventStream) comment(text string) { fmt.Fprintf(&s.buf, ": %s\n\n", text) }

func (s *eventStream) event(n numbered) {
	data, err := json.Marshal(n.event)
	if err != nil {
		s.err = err
		return
	}
	fmt.Fprintf(&s.buf, "id: %d\nevent: %s\ndata: %s\n\n", n.id, n.event.Type, data)
}

func (s *eventStream) flush() {
	if s.err != nil {
		return
	}
	// Not every writer has deadlines; then the connection's end is what bounds it.
	_ = s.c.SetWriteDeadline(time.Now().Add(writeTime))
	if _, s.err = s.w.Write(s.buf.Bytes()); s.err == nil {
		s.err = s.c.Flush()
	}
	s.buf.Reset()
}
