package headroom

import "time"

const (
	// window is over how long requests are counted; most limits of requests are a minute's.
	window = time.Minute
	slots  = 12
	slot   = window / slots

	// A learned limit rises once in so long without a refusal, by one, two, four, … requests; each
	// refusal that meets it where it was doubles the pause. It is forgotten after learnedLife.
	riseEvery    = 2 * time.Minute
	maxConfirmed = 4
	learnedLife  = time.Hour

	// fewest is how many requests must have been taken before a refusal says anything of their number.
	fewest = 3
)

// learned is how many requests a window an upstream takes that sends no figures, by its refusals:
// it falls by three tenths at most at one, or to what was accepted if that is more, and rises slowly. It
// is a plain value.
type learned struct {
	counts    [slots + 1]int32 // a window and the slot that has begun
	at        int64            // the number of the newest slot
	origin    time.Time
	limit     int32 // 0: none is known
	refusedAt time.Time
	confirmed uint8
}

func (l *learned) number(t time.Time) int64 {
	if l.origin.IsZero() {
		l.origin = t
	}
	return int64(t.Sub(l.origin) / slot)
}

// advance empties the slots that have begun since.
func (l *learned) advance(now time.Time) {
	n := l.number(now)
	for k := max(l.at+1, n-slots); k <= n; k++ {
		l.counts[k%(slots+1)] = 0
	}
	l.at = max(l.at, n)
}

// sum returns how many were sent in the last window, and up to a slot longer.
func (l *learned) sum(now time.Time) (n int32) {
	newest := int64(now.Sub(l.origin) / slot)
	for k := max(newest-slots, 0); k <= l.at; k++ {
		n += l.counts[k%(slots+1)]
	}
	return n
}

// send counts a request.
func (l *learned) send(now time.Time) {
	l.advance(now)
	l.counts[l.at%(slots+1)]++
}

// refuse hears that a request that was sent at that time was refused for their number.
func (l *learned) refuse(sent, now time.Time) {
	l.advance(now)
	if k := l.number(sent); k >= 0 && k > l.at-slots-1 && l.counts[k%(slots+1)] > 0 {
		l.counts[k%(slots+1)]--
	}
	accepted := l.sum(now)
	before, known := l.most(now)
	switch {
	case !known && accepted < fewest:
		return
	case !known:
		l.limit, l.confirmed = accepted, 0
	case !sent.After(l.refusedAt): // one burst is one step
		l.limit = min(l.limit, max(accepted, 1))
		return
	case accepted*10 >= before*9:
		l.limit, l.confirmed = min(accepted, before), min(l.confirmed+1, maxConfirmed)
	default:
		l.limit, l.confirmed = min(max(accepted, before*7/10, 1), before), 0
	}
	l.refusedAt = now
}

// accept hears that an answer has come: more may be taken than was thought.
func (l *learned) accept(now time.Time) {
	if most, known := l.most(now); known {
		if n := l.sum(now); n > most {
			l.limit, l.refusedAt, l.confirmed = n, now, 0
		}
	}
}

// most returns how many requests a window are thought to be taken.
func (l *learned) most(now time.Time) (int32, bool) {
	age := now.Sub(l.refusedAt)
	if l.limit == 0 || age >= learnedLife {
		return 0, false
	}
	rises := int64(age / (riseEvery << l.confirmed))
	return l.limit + int32(1)<<min(rises, 20) - 1, true
}

// hold says until when another request is better not sent.
func (l *learned) hold(now time.Time) (time.Time, bool) {
	most, known := l.most(now)
	if !known {
		return time.Time{}, false
	}
	n := l.sum(now)
	if n < most {
		return time.Time{}, false
	}
	newest := int64(now.Sub(l.origin) / slot)
	for k := max(newest-slots, 0); k <= l.at; k++ {
		if n -= l.counts[k%(slots+1)]; n < most {
			return l.origin.Add(time.Duration(k+slots+1) * slot), true
		}
	}
	return now.Add(window), true
}

// fraction is what is left of the learned limit.
func (l *learned) fraction(now time.Time) (float64, bool) {
	most, known := l.most(now)
	if !known {
		return 0, false
	}
	return min(max(1-float64(l.sum(now))/float64(most), 0), 1), true
}
