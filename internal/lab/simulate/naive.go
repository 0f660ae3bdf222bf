package simulate

import (
	"time"

	"omniroute/failover"
	"omniroute/internal/route"
)

// naive is a request at a proxy that only retries: it asks the targets of the plan one after the
// other, siblings in turn, each once and with the same timeouts, and remembers nothing. It is what an
// outage costs without the three layers.
type naive struct {
	*flight
	asked   int
	records []failover.Record
}

// next asks the next target, or gives up. The first of each entry's siblings changes with every request.
func (n *naive) next() {
	w, targets := n.w, n.route.Plan.Targets
	if n.over {
		return
	}
	if n.asked >= min(len(targets), n.route.Plan.Limits.MaxAttempts) {
		w.tally.failed(n.arrived, "every target failed")
		n.finish()
		return
	}
	t := &targets[n.turn()]
	n.asked++
	key, up := t.Key(), t.Data.(*route.Upstream)
	x := w.providers[key.Provider].receive(up, key, n.stream, n.output, w.now)
	w.tally.dispatched(key, w.now)
	n.records = append(n.records, failover.Record{Key: key, At: w.clock()})
	rec := &n.records[len(n.records)-1]
	timeout := t.FirstToken
	if !n.stream {
		timeout, x.first, x.rest = t.Answer, x.first+x.rest, 0
	}
	if x.billed() { // what it asked runs on, whether the client waits or not
		lasts := x.first + x.rest
		if x.first > timeout {
			lasts = timeout
		}
		w.tally.spent(key, w.now, n.prompt, n.output*x.written(lasts), x.first > timeout || x.late)
	}
	if x.hangs || x.first > timeout {
		v := noContent
		x.failure, x.late, x.first = &v, false, timeout
	}
	dispatched := w.now
	w.at(w.now+x.first, func() {
		if n.over {
			return
		}
		if x.failure != nil && !x.late {
			rec.Outcome, rec.Verdict = failover.OutcomeFailed, *x.failure
			n.next()
			return
		}
		rec.FirstContent = x.first
		w.tally.committed(key, w.now)
		first := w.now - n.arrived
		w.at(w.now+x.rest, func() {
			switch {
			case n.over:
				return
			case x.failure != nil:
				rec.Outcome, rec.Verdict = failover.OutcomeFailed, *x.failure
				w.tally.brokeOff(n.arrived, "broke off: "+x.failure.Kind.String())
			default:
				rec.Outcome = failover.OutcomeAnswered
				w.tally.good(n.arrived, dispatched-n.arrived, first, key.Provider)
			}
			n.finish()
		})
	})
}

// turn is the place of the target to ask now.
func (n *naive) turn() int {
	targets := n.route.Plan.Targets
	from := n.asked
	for from > 0 && targets[from-1].Entry == targets[n.asked].Entry {
		from--
	}
	to := n.asked
	for to < len(targets) && targets[to].Entry == targets[n.asked].Entry {
		to++
	}
	return from + (n.asked-from+int(n.arrived/time.Millisecond))%(to-from)
}

func (n *naive) finish() {
	n.over = true
	n.w.live--
	n.w.tally.attempts(n.records)
}
