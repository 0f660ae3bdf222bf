package simulate

import (
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/resilience"
)

// grain is how finely a run's time is divided to see when the traffic was away and back: into tenths of a
// second, and where it is longer than a day, into as many pieces as a day has of them.
func grain(length time.Duration) time.Duration {
	const tenth, most = 100 * time.Millisecond, 24 * 60 * 60 * 10
	return max((length+most-1)/most, tenth)
}

// tally counts during a run.
type tally struct {
	file     *File
	rep      *Report
	interval time.Duration
	slot     time.Duration
	pieces   []piece
	arrivals []uint32 // by slot
	targets  map[resilience.Key]*target
	added    histogram
	first    histogram
	phases   []phase
	open     map[excluded]int // index in out
	out      []Exclusion
}

// phase is one that goes on until its end.
type phase struct {
	Phase
	end          time.Duration
	added, first histogram
}

// phasesOf divides the run by its troubles.
func phasesOf(f *File) []phase {
	from, to := time.Duration(f.Length), time.Duration(0)
	for _, u := range f.Upstreams {
		for _, e := range u.Events {
			from, to = min(from, time.Duration(e.From)), max(to, time.Duration(e.To))
		}
	}
	if from >= to {
		return []phase{{Phase: Phase{Name: "all"}, end: 1 << 62}}
	}
	return []phase{{Phase: Phase{Name: "before"}, end: from}, {Phase: Phase{Name: "during"}, end: to}, {Phase: Phase{Name: "after"}, end: 1 << 62}}
}

func (t *tally) phase(when time.Duration) *phase {
	i := 0
	for when >= t.phases[i].end {
		i++
	}
	return &t.phases[i]
}

type piece struct {
	Interval
	added, first histogram
}

// target counts what happens to one target.
type target struct {
	TargetReport
	begun  []uint32 // first contents, by slot
	sent   []uint32 // attempts, by slot
	wasted []uint32 // those that came to nothing, by the slot of their dispatch
}

type excluded struct {
	node  uint64
	layer resilience.Layer
	key   resilience.Key
}

// newTally divides the run into minutes, or, where it is short or long, into some sixty intervals.
func newTally(f *File) *tally {
	length := time.Duration(f.Length)
	interval := time.Minute
	for _, d := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour} {
		if interval = d; length/d <= 120 {
			break
		}
	}
	t := &tally{file: f, interval: interval, targets: map[resilience.Key]*target{}, open: map[excluded]int{},
		rep:    &Report{Title: f.Title, Seed: f.Seed, Nodes: int(f.Nodes), LengthMS: length.Milliseconds(), IntervalMS: interval.Milliseconds(), Causes: map[string]int{}},
		pieces: make([]piece, (length+interval-1)/interval),
		slot:   grain(length), phases: phasesOf(f),
	}
	t.arrivals = make([]uint32, length/t.slot+1)
	for i := range t.pieces {
		t.pieces[i].FromMS = (time.Duration(i) * interval).Milliseconds()
		t.pieces[i].By = map[string]int{}
	}
	return t
}

func (t *tally) at(when time.Duration) *piece {
	return &t.pieces[min(int(when/t.interval), len(t.pieces)-1)]
}

func (t *tally) target(k resilience.Key) *target {
	x := t.targets[k]
	if x == nil {
		x = &target{TargetReport: TargetReport{Provider: k.Provider, Connection: k.Connection, Model: k.Model, Kinds: map[string]int{}},
			begun: make([]uint32, len(t.arrivals)), sent: make([]uint32, len(t.arrivals)), wasted: make([]uint32, len(t.arrivals))}
		t.targets[k] = x
	}
	return x
}

func (t *tally) count(slots []uint32, when time.Duration) {
	if i := int(when / t.slot); i < len(slots) {
		slots[i]++
	}
}

// request counts one that is over, at the time of its arrival.
func (t *tally) request(arrived time.Duration) *piece {
	p := t.at(arrived)
	t.rep.Requests++
	p.Requests++
	t.phase(arrived).Requests++
	t.count(t.arrivals, arrived)
	return p
}

func (t *tally) answered(f *flight, a *failover.Attempt) {
	// An answer that was finished by others began with the first of them.
	begun := f.req.Records()[0]
	for _, r := range f.req.Records() {
		if r.FirstContent > 0 {
			begun = r
			break
		}
	}
	t.good(f.arrived, begun.At.Sub(epoch)-f.arrived, f.first, a.Target.Key().Provider)
}

// good counts an answer: how long until the attempt that gave it was dispatched, and until its
// first content.
func (t *tally) good(arrived, added, first time.Duration, provider string) {
	p := t.request(arrived)
	t.rep.Answered++
	p.Answered++
	p.By[provider]++
	t.added.add(added)
	p.added.add(added)
	t.first.add(first)
	p.first.add(first)
	ph := t.phase(arrived)
	ph.Answered++
	ph.added.add(added)
	ph.first.add(first)
}

func (t *tally) broke(f *flight, v resilience.Verdict) {
	t.brokeOff(f.arrived, "broke off: "+v.Kind.String())
}

func (t *tally) brokeOff(arrived time.Duration, why string) {
	p := t.request(arrived)
	t.rep.Broken++
	p.Broken++
	t.rep.Causes[why]++
}

func (t *tally) failed(arrived time.Duration, why string) {
	p := t.request(arrived)
	t.rep.Failed++
	p.Failed++
	t.rep.Causes[why]++
}

func (t *tally) gaveUp(f *flight, rep failover.Report) {
	if f.answer != nil {
		t.broke(f, rep.Attempts[len(rep.Attempts)-1].Verdict)
		return
	}
	t.failed(f.arrived, causeWord(rep))
}

func causeWord(rep failover.Report) string {
	switch rep.Cause {
	case failover.CauseNoConnection:
		return "no connection"
	case failover.CauseRequest:
		return "the request itself"
	case failover.CauseDeadline:
		return "deadline"
	case failover.CauseQueueFull:
		return "queue full"
	case failover.CauseLocal:
		return "local network"
	}
	switch rep.Class {
	case failover.ClassLimited:
		return "all rate limited"
	case failover.ClassTimeout:
		return "all timed out"
	case failover.ClassBad:
		return "only bad answers"
	}
	return "all out"
}

func (t *tally) left()    { t.rep.Left++ }
func (t *tally) resumed() { t.rep.Resumed++ }

func (t *tally) dispatched(k resilience.Key, now time.Duration) {
	t.rep.Attempts++
	x := t.target(k)
	x.Attempts++
	t.count(x.sent, now)
	t.at(now).Attempts++
	t.phase(now).Attempts++
}

func (t *tally) committed(k resilience.Key, now time.Duration) {
	t.count(t.target(k).begun, now)
}

// attempts takes in the story of a request that is over.
func (t *tally) attempts(records []failover.Record) {
	for i := range records {
		r := &records[i]
		x := t.target(r.Key)
		when := r.At.Sub(epoch)
		switch {
		case r.Outcome == failover.OutcomeAnswered:
			x.Answered++
		case r.Outcome == failover.OutcomeFailed:
			x.Kinds[r.Verdict.Kind.String()]++
		case fruitless(r.Outcome):
			x.Kinds["overtaken"]++
		}
		if !fruitless(r.Outcome) {
			continue
		}
		t.count(x.wasted, when)
		x.Wasted++
		t.rep.Wasted++
		t.at(when).Wasted++
		t.phase(when).Wasted++
	}
}

// fruitless reports whether an attempt came to nothing; that a client left is its own doing.
func fruitless(o failover.Outcome) bool {
	return o != failover.OutcomeAnswered && o != failover.OutcomeCanceled
}

// spent counts what an attempt costs, at the model's price and without discounts.
func (t *tally) spent(k resilience.Key, when time.Duration, prompt, output float64, wasted bool) {
	price, ok := t.price(k)
	if !ok {
		t.rep.Unpriced++
		return
	}
	dollars := (prompt*price.Input + output*price.Output) / 1e6
	t.rep.Cost += dollars
	t.at(when).Cost += dollars
	t.phase(when).Cost += dollars
	t.target(k).Cost += dollars
	if wasted {
		t.rep.CostWasted += dollars
	}
}

func (t *tally) price(k resilience.Key) (catalog.Price, bool) {
	if p := t.file.cfg.Provider(k.Provider); p != nil {
		return p.PriceOf(k.Model)
	}
	return catalog.Price{}, false
}

// heard follows what is out.
func (t *tally) heard(node uint64, ev resilience.Event, now time.Duration) {
	id := excluded{node, ev.Layer, ev.Key}
	switch ev.Type {
	case resilience.EventOpened, resilience.EventCooling, resilience.EventLocked, resilience.EventQuarantined:
		i, known := t.open[id]
		if !known {
			i = len(t.out)
			t.open[id] = i
			t.out = append(t.out, Exclusion{Node: int(node), Layer: ev.Layer.String(), Key: ev.Key.String(), FromMS: now.Milliseconds()})
		}
		t.out[i].Kind = ev.Kind.String()
	case resilience.EventClosed, resilience.EventCleared, resilience.EventReset:
		if i, known := t.open[id]; known {
			t.out[i].ToMS = now.Milliseconds()
			delete(t.open, id)
		}
	}
}
