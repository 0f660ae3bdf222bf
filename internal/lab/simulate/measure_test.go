package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"omniroute/resilience"
)

// measure is one figure of an incident and the bound that it must keep.
type measure struct {
	name  string
	of    func(*played) float64
	least bool // the bound is the least that will do, as opposed to the most
	bound float64
	unit  string
	// single, where it is not 0, is the bound of a single seed; bound is the median's then.
	single float64
}

func (m measure) keeps(v, bound float64) bool {
	if m.least {
		return v >= bound
	}
	return v <= bound
}

// atWorst lets a single seed miss the bound that the median must keep.
func (m measure) atWorst(single float64) measure {
	m.single = single
	return m
}

func (m measure) show(v float64) string { return fmt.Sprintf("%.5g%s", v, m.unit) }

func answeredAtLeast(least float64) measure {
	return measure{name: "answered", of: func(p *played) float64 { return 100 * p.Perfect }, least: true, bound: least, unit: "%"}
}

func opened(most float64) measure {
	return measure{name: "breaker opened", of: func(p *played) (n float64) {
		for _, ev := range p.events {
			if ev.Layer == resilience.LayerBreaker && ev.Type == resilience.EventOpened {
				n++
			}
		}
		return n
	}, bound: most}
}

func wasted(connection string, most float64) measure {
	return measure{name: strings.TrimSpace("wasted " + connection), of: func(p *played) float64 {
		return float64(p.sum("main", connection, func(t TargetReport) int { return t.Wasted }))
	}, bound: most}
}

func backIn(from time.Duration, rate int, most float64) measure {
	return measure{name: "back after", of: func(p *played) float64 { return p.back(from, rate).Seconds() }, bound: most, unit: "s"}
}

// rush returns the most attempts that the primary got in a tenth of a second that began within ten
// seconds after one of its gates had opened.
func (p *played) rush() int {
	all := p.on("main", false)
	most, done := 0, 0
	for _, ev := range p.events {
		if ev.Key.Provider != "main" || ev.Type != resilience.EventClosed && ev.Type != resilience.EventCleared {
			continue
		}
		i, _ := slices.BinarySearch(all, ev.at)
		for i = max(i, done); i < len(all) && all[i] < ev.at+10*time.Second; i++ {
			end, _ := slices.BinarySearch(all, all[i]+100*time.Millisecond)
			most = max(most, end-i)
			done = i
		}
	}
	return most
}

func delayed(name string, q, most float64) measure {
	return measure{name: name, of: func(p *played) float64 { return p.tally.added.quantile(q).Seconds() }, bound: most, unit: "s"}
}
