package failover

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Hedge says when a request asks a second target beside one that is slow. The first content wins,
// the other attempt is cancelled and counts against nobody. The zero value means never.
type Hedge struct {
	// After is how long an attempt may show no content. A whole answer shows none before its end,
	// so that for those it is the longer of this and what P95 says.
	After time.Duration
	// P95, in place of After, waits as long as 95 of 100 recent attempts on the target took: to the
	// first content of a stream, or to the end of a whole answer. With under 20 recent answers it
	// is a tenth of the target's timeout, at least 1s.
	P95 bool
	// Share bounds the attempts that are started so, as a part of the plan's requests: in no minute
	// there are more than the larger of one and Share of that minute's requests. From above 0 to 1;
	// 0 means 0.05.
	Share float64
	// Ledger counts both. Plans of one name may share one, also one after the other, so that the
	// count survives a change of the plan. Nil means one of its own.
	Ledger *HedgeLedger
}

func (h *Hedge) on() bool { return h.P95 || h.After > 0 }

func (h *Hedge) complete() error {
	switch {
	case h.After < 0:
		return fmt.Errorf("hedge after %v: it must not be negative", h.After)
	case h.After > 0 && h.P95:
		return errors.New("hedge after a time and after p95: choose one of the two")
	case !(h.Share >= 0 && h.Share <= 1): // NaN is neither
		return fmt.Errorf("hedge share %v: it must be from 0 to 1", h.Share)
	case !h.on():
		*h = Hedge{}
		return nil
	}
	set(&h.Share, 0.05)
	if h.Ledger == nil {
		h.Ledger = new(HedgeLedger)
	}
	return nil
}

// hedgeAfter returns when an attempt is slow, 0 for never.
func (t *Target) hedgeAfter(h Hedge, stream bool) time.Duration {
	if !h.on() {
		return 0
	}
	after := h.After
	if h.P95 || !stream {
		p95, known := t.recent(stream).P95()
		if !known {
			p95 = t.unknownPace(stream)
		}
		after = max(after, p95)
	}
	if after >= t.timeout(stream) {
		return 0
	}
	return after
}

func (h *Hedge) count(now time.Time) {
	if h.Ledger != nil {
		h.Ledger.ask(now)
	}
}

func (h *Hedge) take(now time.Time) bool { return h.Ledger.take(now, h.Share) }

// HedgeLedger counts the requests of the last minute and those attempts among them that were
// started beside a slow one. The zero value is empty. It is safe for concurrent use.
type HedgeLedger struct {
	mu      sync.Mutex
	start   time.Time
	last    time.Time // when the last hedge was started
	seconds [ledgerSeconds]ledgerSecond
}

// ledgerSeconds is a minute and the second that has begun.
const ledgerSeconds = 61

type ledgerSecond struct {
	at               int64 // since the start
	requests, hedges int32
}

// second returns the number of the present second. It comes off the monotonic clock.
func (l *HedgeLedger) second(now time.Time) int64 {
	if l.start.IsZero() {
		l.start = now
	}
	return max(int64(now.Sub(l.start)/time.Second), 0)
}

// at returns what is counted in a second.
func (l *HedgeLedger) at(second int64) *ledgerSecond {
	s := &l.seconds[second%ledgerSeconds]
	if s.at != second {
		*s = ledgerSecond{at: second}
	}
	return s
}

func (l *HedgeLedger) ask(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(l.second(now)).requests++
}

// take counts one more hedge if the share allows it.
func (l *HedgeLedger) take(now time.Time, share float64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	second := l.second(now)
	requests, hedges := int32(0), int32(0)
	for i := range l.seconds {
		if s := &l.seconds[i]; second-s.at < ledgerSeconds {
			requests += s.requests
			hedges += s.hedges
		}
	}
	const rounding = 1e-9 // 29% of 100 are 28.999999999999996
	due := l.last.IsZero() || now.Sub(l.last) >= time.Minute
	if !due && float64(hedges+1) > share*float64(requests)+rounding {
		return false
	}
	l.last = now
	l.at(second).hedges++
	return true
}
