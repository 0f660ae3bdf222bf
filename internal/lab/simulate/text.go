package simulate

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"omniroute/internal/config"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WriteText writes the report for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n%s, %s requests, seed %d", r.Title, config.DurationText(time.Duration(r.LengthMS)*time.Millisecond), thousands(r.Requests), r.Seed)
	if r.Nodes > 1 {
		fmt.Fprintf(out, ", %d nodes", r.Nodes)
	}
	if r.Requests == 0 {
		fmt.Fprint(out, "\n\nNo request came: the rate is too low for the length.\n")
		return out.Flush()
	}
	fmt.Fprintf(out, "\n\nanswered       %s of those who waited: %s\n", percent(r.Perfect), thousands(r.Answered))
	if r.Left > 0 {
		fmt.Fprintf(out, "left           %s did not wait\n", thousands(r.Left))
	}
	if n := r.Failed + r.Broken; n > 0 {
		var words []string
		for _, cause := range slices.Sorted(maps.Keys(r.Causes)) {
			words = append(words, fmt.Sprintf("%s %s", thousands(r.Causes[cause]), cause))
		}
		fmt.Fprintf(out, "not answered   %s: %s\n", thousands(n), strings.Join(words, ", "))
	}
	fmt.Fprintf(out, "attempts       %s, %.3f a request; %s came to nothing\n", thousands(r.Attempts), ratio(r.Attempts, r.Requests), thousands(r.Wasted))
	if r.Resumed > 0 {
		fmt.Fprintf(out, "recovered      %s attempts finished an answer that had broken off\n", thousands(r.Resumed))
	}
	fmt.Fprintf(out, "time added     %s\nfirst content  %s\ncost           %s\n", r.Added, r.First, r.bill())
	r.writePhases(out)
	r.writeTroubles(out)
	r.writeExclusions(out)
	r.writeTargets(out)
	r.writeTimeline(out)
	return out.Flush()
}

func (r *Report) writePhases(out io.Writer) {
	if len(r.Phases) < 2 {
		return
	}
	fmt.Fprintf(out, "\n%-9s %10s %10s %10s %8s %11s %11s %11s %12s\n", "PHASE", "REQUESTS", "ANSWERED", "ATTEMPTS", "WASTED", "ADDED P99", "FIRST P50", "FIRST P99", "COST")
	for _, p := range r.Phases {
		cost := dollars(p.Cost)
		if r.Cost == 0 && r.Unpriced > 0 {
			cost = "-" // it is not known
		}
		fmt.Fprintf(out, "%-9s %10s %10s %10s %8s %11s %11s %11s %12s\n", p.Name, thousands(p.Requests), p.Share(), thousands(p.Attempts), thousands(p.Wasted),
			inMS(p.Added.P99), inMS(p.First.P50), inMS(p.First.P99), cost)
	}
}

func (r *Report) writeTroubles(out io.Writer) {
	if len(r.Troubles) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%-17s %-44s %9s %9s %8s\n", "TROUBLE", "", "AWAY IN", "BACK IN", "WASTED")
	for _, t := range r.Troubles {
		fmt.Fprintf(out, "%-17s %-44s %9s %9s %8s\n", clock(t.FromMS)+"-"+clock(t.ToMS), t.Name(), t.Away(), t.Back(), thousands(t.Wasted))
	}
}

func (r *Report) writeExclusions(out io.Writer) {
	if len(r.Exclusions) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%-17s %-10s %-34s %-18s %8s\n", "LONGEST OUT", "LAYER", "WHAT", "WHY", "FOR")
	for _, x := range r.Exclusions {
		lasted := short(x.ToMS - x.FromMS)
		if x.Open {
			lasted = ">" + lasted
		}
		name := x.Key
		if r.Nodes > 1 {
			name = fmt.Sprintf("node %d: %s", x.Node+1, name)
		}
		fmt.Fprintf(out, "%-17s %-10s %-34s %-18s %8s\n", clock(x.FromMS)+"-"+clock(x.ToMS), x.Layer, name, x.Kind, lasted)
	}
}

func (r *Report) writeTargets(out io.Writer) {
	fmt.Fprintf(out, "\n%-44s %10s %10s %8s  %s\n", "TARGET", "ATTEMPTS", "ANSWERED", "WASTED", "WHY")
	for _, t := range r.Targets {
		var kinds []string
		for _, k := range slices.Sorted(maps.Keys(t.Kinds)) {
			kinds = append(kinds, fmt.Sprintf("%s %s", thousands(t.Kinds[k]), k))
		}
		fmt.Fprintf(out, "%-44s %10s %10s %8s  %s\n", t.Key(), thousands(t.Attempts), thousands(t.Answered), thousands(t.Wasted), strings.Join(kinds, ", "))
	}
}

// writeTimeline leaves out the intervals in which nothing happened.
func (r *Report) writeTimeline(out io.Writer) {
	fmt.Fprintf(out, "\n%-9s %9s %9s %7s %7s %9s %7s %10s %10s\n", "FROM", "REQUESTS", "ANSWERED", "BROKEN", "FAILED", "ATTEMPTS", "WASTED", "ADDED P99", "FIRST P99")
	quiet := 0
	for _, p := range r.Timeline {
		if p.Wasted == 0 && p.Failed == 0 && p.Broken == 0 {
			quiet++
			continue
		}
		fmt.Fprintf(out, "%-9s %9s %9s %7s %7s %9s %7s %10s %10s\n", clock(p.FromMS), thousands(p.Requests), thousands(p.Answered),
			thousands(p.Broken), thousands(p.Failed), thousands(p.Attempts), thousands(p.Wasted), inMS(p.AddedP99), inMS(p.FirstP99))
	}
	if quiet > 0 {
		fmt.Fprintf(out, "%d of %d intervals of %s without a failure are left out\n", quiet, len(r.Timeline), config.DurationText(time.Duration(r.IntervalMS)*time.Millisecond))
	}
}

// String writes the quantiles in a row.
func (q Quantiles) String() string {
	return fmt.Sprintf("p50 %s, p95 %s, p99 %s, worst %s", inMS(q.P50), inMS(q.P95), inMS(q.P99), inMS(q.Max))
}

// dollars writes an amount: to the cent, and a small one more finely.
func dollars(v float64) string {
	if v != 0 && v < 0.1 {
		return "$" + strconv.FormatFloat(v, 'f', 4, 64)
	}
	cents := int(math.Round(v * 100))
	return fmt.Sprintf("$%s.%02d", thousands(cents/100), cents%100)
}

// bill puts the cost into words.
func (r *Report) bill() string {
	switch {
	case r.Unpriced == 0 && r.CostWasted == 0:
		return dollars(r.Cost)
	case r.Unpriced == 0:
		return fmt.Sprintf("%s, %s of it for attempts that came to nothing", dollars(r.Cost), dollars(r.CostWasted))
	case r.Cost == 0:
		return "not known: the models have no price; add models: [{id: NAME, price: {input: 1.25, output: 10}}] to their providers"
	}
	return fmt.Sprintf("%s, %s of it for attempts that came to nothing; %s attempts had no price", dollars(r.Cost), dollars(r.CostWasted), thousands(r.Unpriced))
}

func inMS(v float64) string { return short(int64(v)) }

// short writes milliseconds for people: 0, 12ms, 3.4s, 5m3s.
func short(v int64) string {
	d := time.Duration(v) * time.Millisecond
	switch {
	case d == 0:
		return "0"
	case d < time.Second:
		return d.String()
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return config.DurationText(d.Round(time.Second))
}

func after(v *int64) string {
	if v == nil {
		return "never"
	}
	return short(*v)
}

// clock writes a time of the run: 20:00, 1:20:00.
func clock(v int64) string {
	s := v / 1000
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// percent never rounds what is not whole up to 100.
func percent(share float64) string {
	text := strconv.FormatFloat(100*share, 'f', 3, 64)
	if text == "100.000" && share < 1 {
		text = "99.999"
	}
	return text + "%"
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// thousands groups the digits of a number.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
