package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/internal/config"
)

const (
	// maxQueue is how many messages wait for one receiver; the oldest gives way.
	maxQueue = 100
	// sendTime bounds one try. A failed one is repeated after firstRetry, then after twice as long each time up to
	// lastRetry, at most maxTries times: some eighteen minutes.
	sendTime   = 10 * time.Second
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	maxTries   = 12
)

// receiver delivers messages to one address, in order.
type receiver struct {
	of     config.Alert
	name   string
	client *http.Client
	log    *slog.Logger
	counts *counts

	mu    sync.Mutex
	queue []Message
	wake  chan struct{}
	last  chan struct{} // closed when nothing more will come
	ended bool
	done  chan struct{}
}

// counts are of all receivers.
type counts struct{ sent, dropped atomic.Int64 }

// newReceiver starts a receiver. It ends with cut, or with finish once its queue is empty.
func newReceiver(cut context.Context, of config.Alert, client *http.Client, log *slog.Logger, n *counts) *receiver {
	r := &receiver{of: of, client: client, log: log, counts: n, wake: make(chan struct{}, 1), last: make(chan struct{}), done: make(chan struct{})}
	if r.name = of.Name; r.name == "" {
		if u, err := url.Parse(of.URL.Reveal()); err == nil {
			r.name = u.Hostname() // the rest of such an address is often a secret
		}
	}
	go r.run(cut)
	return r
}

func (r *receiver) put(m Message) {
	if !slices.Contains(r.of.Events, m.Subject.Event) {
		return
	}
	r.mu.Lock()
	if r.queue = append(r.queue, m); len(r.queue) > maxQueue {
		r.queue = r.queue[1:]
		r.counts.dropped.Add(1)
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// finish says that nothing more will come.
func (r *receiver) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.ended = true
		close(r.last)
	}
}

// over reports whether it has ended.
func (r *receiver) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *receiver) take() (Message, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return Message{}, false
	}
	m := r.queue[0]
	r.queue = r.queue[1:]
	return m, true
}

func (r *receiver) run(cut context.Context) {
	defer close(r.done)
	for {
		m, ok := r.take()
		if ok {
			r.deliver(cut, m)
			continue
		}
		select {
		case <-r.wake:
		case <-cut.Done():
			return
		case <-r.last:
			if m, ok = r.take(); !ok {
				return
			}
			r.deliver(cut, m)
		}
	}
}

// deliver tries until the message is taken, refused for good, or given up.
func (r *receiver) deliver(cut context.Context, m Message) {
	body := m.encode()
	pause := firstRetry
	for try := 1; ; try++ {
		err := r.send(cut, body)
		if err == nil {
			r.counts.sent.Add(1)
			return
		}
		final, refused := err.(*refusedError) //nolint:errorlint // our own, never wrapped
		if refused && final.forGood || try == maxTries || cut.Err() != nil {
			r.counts.dropped.Add(1)
			r.log.Error("an alert could not be delivered", "receiver", r.name, "type", m.Type, "id", m.ID, "tries", try, "error", err)
			return
		}
		if try == 1 {
			r.log.Warn("an alert could not be delivered yet; trying again", "receiver", r.name, "type", m.Type, "id", m.ID, "error", err)
		}
		wait := pause
		select {
		case <-r.last:
			wait = min(wait, firstRetry) // there is not much time left
		default:
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-cut.Done():
		}
		timer.Stop()
		pause = min(2*pause, lastRetry)
	}
}

// refusedError is an answer that is none of success.
type refusedError struct {
	status  int
	forGood bool
}

// Error says what the receiver answered.
func (e *refusedError) Error() string {
	if e.status/100 == 3 {
		return fmt.Sprintf("the receiver answers %d; redirects are not followed, so write the address that it leads to", e.status)
	}
	return fmt.Sprintf("the receiver answers %d", e.status)
}

func (r *receiver) send(cut context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(cut, sendTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.of.URL.Reveal(), bytes.NewReader(body))
	if err != nil {
		return &refusedError{forGood: true} // the configuration has checked the address
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "omniroute")
	if !r.of.Secret.Empty() {
		req.Header.Set(SignatureHeader, sign(r.of.Secret.Reveal(), body, time.Now()))
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return withoutAddress(err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
	switch s := resp.StatusCode; {
	case s/100 == 2:
		return nil
	case s/100 == 5, s == http.StatusRequestTimeout, s == http.StatusTooManyRequests:
		return &refusedError{status: s}
	default:
		return &refusedError{status: s, forGood: true}
	}
}

// withoutAddress takes the address, which may hold a secret, out of a client's error.
func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
