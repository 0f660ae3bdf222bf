package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// longest is how many exclusions a report lists.
const longest = 10

// report sums up the run.
func (t *tally) report() *Report {
	r := t.rep
	if waited := r.Answered + r.Broken + r.Failed; waited > 0 {
		r.Perfect = float64(r.Answered) / float64(waited)
	} else {
		r.Perfect = 1
	}
	r.Requests += r.Left
	r.Added, r.First = quantiles(&t.added), quantiles(&t.first)
	for i := range t.pieces {
		p := &t.pieces[i]
		p.AddedP99, p.FirstP99 = ms(p.added.quantile(0.99)), ms(p.first.quantile(0.99))
		r.Timeline = append(r.Timeline, p.Interval)
	}
	for i := range t.phases {
		p := &t.phases[i]
		p.Added, p.First = quantiles(&p.added), quantiles(&p.first)
		r.Phases = append(r.Phases, p.Phase)
	}
	for _, x := range t.targets {
		r.Targets = append(r.Targets, x.TargetReport)
	}
	slices.SortFunc(r.Targets, func(a, b TargetReport) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Connection, b.Connection), strings.Compare(a.Model, b.Model))
	})
	for _, i := range t.open {
		t.out[i].Open, t.out[i].ToMS = true, r.LengthMS
	}
	slices.SortStableFunc(t.out, func(a, b Exclusion) int {
		return cmp.Or(cmp.Compare(b.ToMS-b.FromMS, a.ToMS-a.FromMS), cmp.Compare(a.FromMS, b.FromMS), strings.Compare(a.Key, b.Key), cmp.Compare(a.Node, b.Node))
	})
	r.Exclusions = t.out[:min(len(t.out), longest)]
	for _, p := range t.file.cfg.Providers {
		for _, e := range t.file.Upstreams[p.ID].Events {
			r.Troubles = append(r.Troubles, t.trouble(p.ID, e))
		}
	}
	slices.SortStableFunc(r.Troubles, func(a, b Trouble) int { return cmp.Compare(a.FromMS, b.FromMS) })
	return r
}

// trouble measures one event of the schedule.
func (t *tally) trouble(provider string, e Event) Trouble {
	from, to := int(time.Duration(e.From)/slot), int(time.Duration(e.To)/slot)
	out := Trouble{What: what(provider, e), FromMS: time.Duration(e.From).Milliseconds(), ToMS: time.Duration(e.To).Milliseconds()}
	begun, failed := make([]int, len(t.arrivals)), make([]int, len(t.arrivals))
	for k, x := range t.targets {
		if k.Provider != provider || e.Connection != "" && k.Connection != e.Connection || e.Model != "" && k.Model != e.Model {
			continue
		}
		for i := range begun {
			begun[i] += int(x.begun[i])
			failed[i] += int(x.failed[i])
		}
	}
	sum := func(of []int, from, to int) (n int) {
		for _, k := range of[min(max(from, 0), len(of)):min(max(to, 0), len(of))] {
			n += k
		}
		return n
	}
	out.Wasted = sum(failed, from, to)
	const away, back, before = 20, 10, 600 // slots: two seconds, one, a minute
	for s := from; s < to; s++ {
		came := 0
		for _, n := range t.arrivals[s:min(s+away, len(t.arrivals))] {
			came += int(n)
		}
		if sum(failed, s, min(s+away, to)) <= max(1, came/20) {
			at := (time.Duration(s-from) * slot).Milliseconds()
			out.SwitchMS = &at
			break
		}
	}
	used := min(from, before)
	if usual := sum(begun, from-used, from); usual > 0 {
		for s := to; s+back <= len(begun); s++ {
			if begun[s] > 0 && sum(begun, s, s+back)*used*2 >= usual*back {
				at := (time.Duration(s-to) * slot).Milliseconds()
				out.ReturnMS = &at
				break
			}
		}
	}
	return out
}

// what puts an event into words.
func what(provider string, e Event) string {
	var b strings.Builder
	b.WriteString(provider)
	for _, name := range []string{e.Connection, e.Model} {
		if name != "" {
			b.WriteString("/" + name)
		}
	}
	if e.Slow > 0 {
		fmt.Fprintf(&b, ": %v times slower", e.Slow)
	} else {
		b.WriteString(": " + e.Answer)
	}
	if *e.Share < 1 {
		fmt.Fprintf(&b, " for %.4g%% of the attempts", 100**e.Share)
	}
	return b.String()
}
