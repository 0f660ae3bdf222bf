package failover

import (
	"slices"
	"time"

	"omniroute/resilience"
)

// Picker says which target a request tries next. It belongs to one request and is asked anew
// before each attempt, so that it can go by how things stand then. Without one a request tries
// the targets in the plan's own order.
type Picker interface {
	// Pick returns the place in the plan of the target to try next, one of those that are open,
	// and -1 when none is.
	Pick(open *Open, now time.Time) int
	// Restart says that the request has waited: every target that could be tried may be tried again.
	Restart()
}

// Order is the Picker that goes through a plan in a fixed order.
type Order []int

// Pick returns the first that is open.
func (o Order) Pick(open *Open, _ time.Time) int {
	for _, i := range o {
		if open.Has(i) {
			return i
		}
	}
	return -1
}

// Restart does nothing.
func (o Order) Restart() {}

// Open tells which targets of its plan a request may try now: those that it has not tried, that
// could do better than one that refused it, that no gate excludes, and that have room for it. It asks the gates about a
// few targets at a time, when it is first asked about one of them: one lock and one clock read
// serve them all, and a healthy first target spares the question about the others.
type Open struct {
	request *Request
	who     choice
	marks   []mark
}

type mark uint8

const (
	unasked mark = iota
	gateOpen
	isClosed
	isOpen
)

// atOnce is how many targets are asked about at a time.
const atOnce = 64

// Has reports whether the target in that place of the plan may be tried.
func (o *Open) Has(i int) bool {
	if m := o.marks[i]; m >= isClosed {
		return m == isOpen
	}
	return o.find(i)
}

// Ask returns what the request asks for.
func (o *Open) Ask() *Ask { return &o.request.ask }

// find finds out about a target.
func (o *Open) find(i int) bool {
	if o.marks[i] == unasked {
		o.look(i)
	}
	if o.marks[i] == gateOpen {
		o.marks[i] = isClosed
		if o.request.roomy(i) {
			o.marks[i] = isOpen
		}
	}
	return o.marks[i] == isOpen
}

// look asks the gates about a target and those beside it.
func (o *Open) look(i int) {
	r := o.request
	from := i - i%atOnce
	to := min(from+atOnce, len(o.marks))
	var room [atOnce]resilience.Admission
	said := room[:to-from]
	gates := r.plan.gates[from:to]
	gates[0].Engine().Admissions(gates, said)
	for k, a := range said {
		i := from + k
		s, t := &r.state[i], &r.plan.Targets[i]
		switch {
		case a == resilience.Out:
			o.marks[i] = isClosed
			r.meet(i)
		case s.tried || s.unfit || o.who != anyone && a == resilience.Doubtful || o.who == sound && !r.sound(i):
			o.marks[i] = isClosed
		case t.Model == nil && t.Meter == nil && (t.Places == nil || t.Places == r.granted):
			o.marks[i] = isOpen
		default:
			o.marks[i] = gateOpen
		}
	}
}

// mostMet bounds how many exclusions a request remembers.
const mostMet = 16

// meet notes an exclusion that the request has met before its first attempt: what came later is told
// by the attempts.
func (r *Request) meet(i int) {
	s := &r.state[i]
	if r.dispatched > 0 || s.unfit || s.met || len(r.met) == mostMet {
		return
	}
	s.met = true
	if x, out := r.plan.Targets[i].Check(); out {
		r.met = append(r.met, Skip{Key: r.plan.Targets[i].Key(), Exclusion: x})
	}
}

// sound reports whether nothing is known against a target and it is not busy with the request.
func (r *Request) sound(i int) bool {
	t := &r.plan.Targets[i]
	return t.Sound() && !slices.ContainsFunc(r.running, func(a *Attempt) bool { return a.Target.Key() == t.Key() })
}

// close says that a target may not be tried after all: somebody else was faster.
func (o *Open) close(i int) { o.marks[i] = isClosed }

// reset forgets what the gates have said.
func (o *Open) reset(r *Request, who choice) {
	o.request, o.who = r, who
	clear(o.marks)
}

// standings asks the gates of the plan's targets from one place up to another.
func (p *Plan) standings(from, to int, into []resilience.Standing) []resilience.Standing {
	if from == to {
		return into[:0]
	}
	return p.gates[from].Engine().Standings(p.gates[from:to], false, into)
}

// each calls f with the standing of every target that the request may still make use of, until
// it returns false.
func (r *Request) each(f func(i int, s *resilience.Standing) bool) {
	var room [atOnce]resilience.Standing
	for from := 0; from < len(r.state); from += atOnce {
		standings := r.plan.standings(from, min(from+atOnce, len(r.state)), room[:0])
		for k := range standings {
			if !r.state[from+k].unfit && !f(from+k, &standings[k]) {
				return
			}
		}
	}
}

// pick returns the target to try next, -1 when none is open.
func (r *Request) pick(now time.Time) int {
	if r.picker != nil {
		return r.picker.Pick(&r.open, now)
	}
	for i := range r.state {
		// What was tried need not be asked about.
		if s := &r.state[i]; !s.tried && !s.unfit && r.open.Has(i) {
			return i
		}
	}
	return -1
}

// Choose returns the place of the target that a request which has not begun would try first with a
// picker, -1 when none is open. Nothing is dispatched.
func (r *Request) Choose(p Picker, now time.Time) int {
	r.picker, r.now = p, now
	r.open.reset(r, anyone)
	return r.pick(now)
}

// Bar takes a target out of the request before it begins, as if it were not in the plan.
func (r *Request) Bar(i int) {
	s := &r.state[i]
	if !s.barred {
		r.left--
	}
	s.barred, s.unfit = true, true
}

// Outlook returns the places of the plan's targets that the request would try, in their order, if
// every attempt failed and changed nothing else. It changes nothing. The request must not have begun.
func (r *Request) Outlook(now time.Time) []int {
	var order []int
	r.now = now
	for {
		r.open.reset(r, anyone)
		for i := r.pick(now); i >= 0; i = r.pick(now) {
			order = append(order, i)
			r.open.close(i)
		}
		if order != nil || !r.stretch() {
			break
		}
	}
	return slices.Clip(order)
}
