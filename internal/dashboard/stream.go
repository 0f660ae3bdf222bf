package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"omniroute/internal/admin"
)

const (
	// writeTime is how long one message may take to be written to a page.
	writeTime = 10 * time.Second
	// maxReaders bounds how many pages are live at once.
	maxReaders = 100
)

// readers counts the live pages and ends them all.
type readers struct {
	mu   sync.Mutex
	n    int
	done chan struct{}
	over bool
}

func (q *readers) init() { q.done = make(chan struct{}) }

func (q *readers) enter() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n >= maxReaders {
		return false
	}
	q.n++
	return true
}

func (q *readers) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n--
}

func (q *readers) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.over {
		q.over = true
		close(q.done)
	}
}

// stream keeps a page live: first all there is, then what changes, as server-sent events.
//
// A page that reads slowly misses nothing and costs nothing: what it gets next is the difference
// between what it was sent last and what is so by then.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request) {
	if _, err := d.who(r); err != nil {
		admin.WriteError(w, err)
		return
	}
	if !d.readers.enter() {
		admin.WriteError(w, &admin.Problem{Status: http.StatusServiceUnavailable, Code: "too_many_pages", Message: fmt.Sprintf("%d pages are open already; close one", maxReaders)})
		return
	}
	defer d.readers.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	s := live{w: w, c: http.NewResponseController(w)}
	s.send("hello", map[string]string{"assets": version})
	pace, beat := time.NewTicker(d.o.Pace), time.NewTicker(d.o.Heartbeat)
	defer pace.Stop()
	defer beat.Stop()
	var seen view
	for s.err == nil {
		v, now := d.feed.latest(time.Now())
		if c := changeOf(seen, v); !c.empty() {
			c.Now = now
			s.send("view", c)
			seen = v
		}
		select {
		case <-pace.C:
		case <-beat.C:
			// The session may be over by now, or the token another one.
			if _, err := d.who(r); err != nil {
				s.send("bye", map[string]string{"why": "signed_out"})
				return
			}
			s.send("alive", change{Now: now})
		case <-d.readers.done:
			s.send("bye", map[string]string{"why": "shutdown"})
			return
		case <-r.Context().Done():
			return
		}
	}
}

// live writes server-sent events and remembers the first error.
type live struct {
	w   http.ResponseWriter
	c   *http.ResponseController
	err error
}

func (s *live) send(event string, doc any) {
	data, err := json.Marshal(doc)
	if s.err == nil {
		s.err = err
	}
	if s.err != nil {
		return
	}
	// Not every writer has deadlines; then the connection's end is what bounds it.
	_ = s.c.SetWriteDeadline(time.Now().Add(writeTime))
	if _, s.err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, data); s.err == nil {
		s.err = s.c.Flush()
	}
}
