package relay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/classify"
)

// The causes by which an attempt is ended that is not its upstream's fault.
var (
	errDeadline = errors.New("the request's deadline has passed")
	errEnough   = errors.New("the answer is complete")
)

const (
	// errorBodyWait is how long the body of an error answer may take: its status has said what
	// counts.
	errorBodyWait = 5 * time.Second
	// afterFinish is how long the usage and the terminator may take after the finish reason, and
	// afterTerminator how long the rest of the body is read after that, so that its connection
	// can be used again.
	afterFinish     = 5 * time.Second
	afterTerminator = 50 * time.Millisecond
	// lastWords is how long a client may take to read what it is told at the deadline.
	lastWords = 5 * time.Second
)

// stage is what a watch waits for.
type stage uint8

const (
	waiting   stage = iota // the first content of a stream, or a whole answer
	held                   // nothing: the answer is there and not yet on its way
	streaming              // the next bytes, and the next content
	closing                // the end of a complete answer
	over
)

// watch is the timer of one attempt: a single one that is set anew whenever it rings too early.
// It is armed at the dispatch. Time in which nobody reads from the upstream, because the client
// is slow, counts against nobody.
type watch struct {
	cancel context.CancelCauseFunc
	keeper keeper
	base   time.Time // of the dispatch, from which the times below are counted

	phase atomic.Uint32 // a classify.Phase
	stage stage

	mu       sync.Mutex
	timer    *time.Timer
	expired  error         // what ended the attempt
	deadline time.Duration // of the request
	aside    time.Duration // when others may be started beside it; 0 when that does not matter any more
	limit    time.Duration // of the wait
	name     string        // of the timer behind limit, as the configuration has it
	after    time.Duration
	idle     time.Duration
	stall    time.Duration

	// The reader's: when the present Read began, in nanoseconds (0: none is under way), and the time
	// spent in Reads since the last content.
	reading atomic.Int64
	dry     atomic.Int64
}

// keeper is told what a watch sees, at most once each.
type keeper interface {
	handOver()   // at aside
	slowWriter() // at the deadline, of an answer that is on its way
}

// start arms the watch.
func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.next()-time.Since(w.base), w.check)
}

// next returns when the watch has to look again.
func (w *watch) next() time.Duration {
	at := w.deadline
	if w.stage == waiting {
		at = min(at, w.limit)
		if w.aside > 0 {
			at = min(at, w.aside)
		}
	}
	return at
}

// shorten ends the wait earlier, under the same name.
func (w *watch) shorten(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := time.Since(w.base) + d; w.stage == waiting && at < w.limit {
		w.limit = at
		w.timer.Reset(d)
	}
}

// hold ends the wait: what was waited for is there. It returns false when that is too late.
func (w *watch) hold() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = held
	return w.expired == nil
}

// stream watches a stream from its first content on.
func (w *watch) stream(idle, stall time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage, w.idle, w.stall = streaming, idle, stall
	w.timer.Reset(min(idle, stall, w.left()))
}

// write watches the writing of a whole answer, which only the deadline bounds.
func (w *watch) write() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = streaming
	left := w.left()
	w.idle, w.stall = left+time.Hour, left+time.Hour
	w.timer.Reset(left)
}

// left returns the time to the deadline.
func (w *watch) left() time.Duration { return w.deadline - time.Since(w.base) }

// close gives a complete answer so long to end.
func (w *watch) close(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage == streaming || w.stage == closing {
		w.stage, w.idle = closing, d
		w.dry.Store(0)
		w.timer.Reset(d)
	}
}

// reopen takes close back: the answer goes on after all.
func (w *watch) reopen(idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage == closing {
		w.stage, w.idle = streaming, idle
	}
}

// stop ends the watch.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = over
	if w.timer != nil {
		w.timer.Stop()
	}
}

// check runs when a limit might have been reached.
func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(w.base)
	var next time.Duration
	switch w.stage {
	case held, over:
		return
	case waiting:
		if w.limit <= now && w.limit < w.deadline {
			w.expire(&classify.TimeoutError{Phase: classify.Phase(w.phase.Load()), Timer: w.name, After: w.after})
			return
		}
		if w.aside > 0 && w.aside <= now {
			w.aside = 0
			w.keeper.handOver()
		}
		next = w.next() - now
	case streaming, closing:
		// In this order, so that a Read which ends meanwhile is counted once or not at all.
		dry, wait := time.Duration(w.dry.Load()), time.Duration(0)
		if since := w.reading.Load(); since != 0 {
			wait = max(now-time.Duration(since), 0)
			dry += wait
		}
		switch {
		case w.stage == closing && dry >= w.idle:
			w.expire(errEnough)
			return
		case wait >= w.idle:
			w.expire(&classify.TimeoutError{Phase: classify.PhaseMidStream, Timer: "idle_timeout", After: w.idle})
			return
		case dry >= w.stall:
			w.expire(&classify.TimeoutError{Phase: classify.PhaseMidStream, Timer: "stall_timeout", After: w.stall})
			return
		}
		next = min(w.idle-wait, w.stall-dry, w.deadline-now)
		if w.stage == closing {
			next = min(next, w.idle-dry)
		}
	}
	if w.deadline <= now {
		sending := w.stage == streaming || w.stage == closing
		w.expire(errDeadline)
		if sending {
			w.keeper.slowWriter()
		}
		return
	}
	w.timer.Reset(max(next, time.Millisecond))
}

func (w *watch) expire(cause error) {
	w.stage, w.expired = over, cause
	w.cancel(cause)
}

// readBegins and readEnds enclose each Read from the upstream once content has come.
func (w *watch) readBegins() int64 {
	now := max(int64(time.Since(w.base)), 1)
	w.reading.Store(now)
	return now
}

func (w *watch) readEnds(began int64) (took time.Duration) {
	took = time.Since(w.base) - time.Duration(began)
	w.dry.Store(w.dry.Load() + int64(took))
	w.reading.Store(0)
	return took
}

// content says that the stream has made progress.
func (w *watch) content() { w.dry.Store(0) }
