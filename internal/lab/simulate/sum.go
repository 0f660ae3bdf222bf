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
	from, to := int(time.Duration(e.From)/t.slot), int(time.Duration(e.To)/t.slot)
	out := Trouble{Unmet: true, What: what(provider, e), FromMS: time.Duration(e.From).Milliseconds(), ToMS: time.Duration(e.To).Milliseconds()}
	begun, sent := make([]int, len(t.arrivals)), make([]int, len(t.arrivals))
	for k, x := range t.targets {
		if k.Provider != provider || e.Connection != "" && k.Connection != e.Connection || e.Model != "" && k.Model != e.Model {
			continue
		}
		out.Unmet = out.Unmet && x.Attempts == 0
		for i := range begun {
			begun[i] += int(x.begun[i])
			sent[i] += int(x.sent[i])
			if i >= from && i < to {
				out.Wasted += int(x.wasted[i])
			}
		}
	}
	came := make([]int, len(t.arrivals))
	for i, n := range t.arrivals {
		came[i] = int(n)
	}
	sum := func(of []int, from, to int) (n int) {
		for _, k := range of[min(max(from, 0), len(of)):min(max(to, 0), len(of))] {
			n += k
		}
		return n
	}
	slots := func(d time.Duration) int { return int(max(d/t.slot, 1)) }
	if sum(came, from, max(to, from+1)) == 0 {
		out.Unmet = true // nobody came at all
	}
	away, back, before := slots(2*time.Second), slots(time.Second), slots(time.Minute)
	const enough = 20 // answers before it, to know what was usual
	for s := from; !out.Unmet && (s == from || s+away <= to); s++ {
		end := min(s+away, to)
		if came := sum(came, s, end); came > 0 && sum(sent, s, end)*20 <= came {
			at := (time.Duration(s-from) * t.slot).Milliseconds()
			out.SwitchMS = &at
			break
		}
	}
	used := min(from, before)
	for used < from && sum(begun, from-used, from) < enough {
		used = min(2*used, from)
	}
	usual := sum(begun, from-used, from)
	if out.Untold = out.Unmet || usual == 0 || to >= int(time.Duration(t.file.Length)/t.slot); !out.Untold {
		for s := to; s+back <= len(begun); s++ {
			if begun[s] > 0 && sum(begun, s, s+back)*used*2 >= usual*back {
				at := (time.Duration(s-to) * t.slot).Milliseconds()
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
