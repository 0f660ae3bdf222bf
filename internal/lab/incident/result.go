package incident

import (
	"cmp"
	"slices"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// noContent is what an attempt says whose time is up.
var noContent = resilience.Verdict{
	Scope: resilience.ScopeProvider, Kind: resilience.KindTimeout, RetrySame: true, RetryElsewhere: true, Rule: "timeout.first_content",
}

// Result is what happened in a run.
type Result struct {
	Routes map[string]*Count
	// Causes counts the requests that were given up.
	Causes map[failover.Cause]int
	// Failed counts the attempts on a target that failed, were too late or were overtaken.
	Failed map[resilience.Key]int
	// Delays has for every answered request how long it took from its arrival to the dispatch of
	// the attempt that answered it: what the gateway adds to the answer's own time. Sorted.
	Delays []time.Duration
	// Firsts has for every answered request how long it took to its first content. Sorted.
	Firsts []time.Duration
	// Events are the engine's, with their times.
	Events []Event

	dispatches map[resilience.Key][]time.Duration
	answers    map[string][]time.Duration // by provider: when the attempts were dispatched that it answered
}

// Count is what became of a route's requests.
type Count struct{ Requests, Answered int }

// Event is an engine's event and when it came.
type Event struct {
	At time.Duration
	resilience.Event
}

func newResult() *Result {
	return &Result{
		Routes: map[string]*Count{}, Causes: map[failover.Cause]int{}, Failed: map[resilience.Key]int{},
		dispatches: map[resilience.Key][]time.Duration{}, answers: map[string][]time.Duration{},
	}
}

func (r *Result) route(name string) *Count {
	c := r.Routes[name]
	if c == nil {
		c = new(Count)
		r.Routes[name] = c
	}
	return c
}

func (r *Result) answered(f *flight, a *failover.Attempt) {
	c := r.route(f.route)
	c.Requests++
	c.Answered++
	start := a.Start().Sub(epoch)
	r.Delays = append(r.Delays, start-f.arrived)
	r.Firsts = append(r.Firsts, f.w.now-f.arrived)
	p := a.Target.Key().Provider
	r.answers[p] = append(r.answers[p], start)
}

func (r *Result) gaveUp(f *flight, rep failover.Report) {
	r.route(f.route).Requests++
	r.Causes[rep.Cause]++
}

func (r *Result) attempts(records []failover.Record) {
	for i := range records {
		if records[i].Outcome != failover.OutcomeAnswered {
			r.Failed[records[i].Key]++
		}
	}
}

func (r *Result) dispatched(key resilience.Key, now time.Duration) {
	r.dispatches[key] = append(r.dispatches[key], now)
}

func (r *Result) heard(ev resilience.Event, now time.Duration) {
	r.Events = append(r.Events, Event{now, ev})
}

// complete sorts what came in any order.
func (r *Result) complete() {
	slices.Sort(r.Delays)
	slices.Sort(r.Firsts)
	for _, a := range r.answers {
		slices.Sort(a)
	}
}

// Total counts the requests of all routes but those that are named.
func (r *Result) Total(but ...string) (t Count) {
	for name, c := range r.Routes {
		if !slices.Contains(but, name) {
			t.Requests += c.Requests
			t.Answered += c.Answered
		}
	}
	return t
}

// Share is the part of the requests that was answered, from 0 to 1.
func (c Count) Share() float64 {
	if c.Requests == 0 {
		return 1
	}
	return float64(c.Answered) / float64(c.Requests)
}

// Wasted counts the attempts that came to nothing, on a provider and, where it is not empty, on
// one of its connections.
func (r *Result) Wasted(provider, connection string) int {
	n := 0
	for key, k := range r.Failed {
		if key.Provider == provider && (connection == "" || key.Connection == connection) {
			n += k
		}
	}
	return n
}

// Dispatches returns when attempts were sent to a provider, in order; connection narrows it where
// it is not empty.
func (r *Result) Dispatches(provider, connection string) []time.Duration {
	var all []time.Duration
	for key, times := range r.dispatches {
		if key.Provider == provider && (connection == "" || key.Connection == connection) {
			all = append(all, times...)
		}
	}
	slices.Sort(all)
	return all
}

// AnsweredBy counts the requests that a provider answered.
func (r *Result) AnsweredBy(provider string) int { return len(r.answers[provider]) }

// Delayed counts the answered requests that were delayed by more than d.
func (r *Result) Delayed(d time.Duration) int {
	i, _ := slices.BinarySearch(r.Delays, d+1)
	return len(r.Delays) - i
}

// Delay returns the quantile q, from 0 to 1, of the delays.
func (r *Result) Delay(q float64) time.Duration {
	if len(r.Delays) == 0 {
		return 0
	}
	return r.Delays[min(int(q*float64(len(r.Delays))), len(r.Delays)-1)]
}

// Trips counts the events of one type on a layer.
func (r *Result) Trips(layer resilience.Layer, t resilience.EventType) int {
	n := 0
	for _, ev := range r.Events {
		if ev.Layer == layer && ev.Type == t {
			n++
		}
	}
	return n
}

// Back says how long after from a provider was in use again: the time to the first attempt that
// it answered and after which it answered at least rate attempts within a second. It returns
// false when that never happened.
func (r *Result) Back(provider string, from time.Duration, rate float64) (time.Duration, bool) {
	a := r.answers[provider]
	i, _ := slices.BinarySearch(a, from)
	for ; i < len(a); i++ {
		end, _ := slices.BinarySearchFunc(a, a[i]+time.Second, cmp.Compare[time.Duration])
		if float64(end-i) >= rate {
			return a[i] - from, true
		}
	}
	return 0, false
}

// Rush returns the most attempts that a provider got in any window of that length that began
// within ten seconds after one of its gates had opened.
func (r *Result) Rush(provider string, window time.Duration) int {
	all := r.Dispatches(provider, "")
	most, done := 0, 0
	for _, ev := range r.Events {
		if ev.Key.Provider != provider || ev.Type != resilience.EventClosed && ev.Type != resilience.EventCleared {
			continue
		}
		i, _ := slices.BinarySearch(all, ev.At)
		for i = max(i, done); i < len(all) && all[i] < ev.At+10*time.Second; i++ {
			end, _ := slices.BinarySearch(all, all[i]+window)
			most = max(most, end-i)
			done = i
		}
	}
	return most
}
