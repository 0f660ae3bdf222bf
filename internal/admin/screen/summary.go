package screen

import (
	"fmt"
	"io"
	"strings"
	"time"

	"omniroute/internal/admin"
	"omniroute/resilience"
)

// summary is the answer at a glance: whether all is well, else what is out and when the first of it
// is back.
func (s Style) summary(w io.Writer, st admin.Status) {
	parts, col := sumUp(st)
	cells := make([]cell, 0, len(parts))
	for _, p := range parts {
		cells = append(cells, cell{p, col})
	}
	s.flow(w, cells)
}

func sumUp(st admin.Status) (parts []string, col colour) {
	out, known, persons, cooling := 0, 0, 0, 0
	var soonest time.Time
	back := func(at time.Time) {
		if at.After(st.Now.Time) && (soonest.IsZero() || at.Before(soonest)) {
			soonest = at
		}
	}
	for i := range st.Providers {
		p := &st.Providers[i]
		if len(p.Connections) == 0 {
			continue
		}
		known++
		if !p.Available {
			out++
			back(p.AvailableAt.Time)
		}
		if b := p.Breaker; b.State == resilience.Open && b.RetryAfterMs > 0 {
			back(st.Now.Add(time.Duration(b.RetryAfterMs) * time.Millisecond))
		}
		for j := range p.Connections {
			c := &p.Connections[j]
			switch c.State {
			case resilience.Quarantined:
				persons++
			case resilience.Cooling:
				cooling++
				back(c.RateLimitedUntil.Time)
			}
		}
	}
	locked := 0
	for _, l := range st.Lockouts {
		back(l.LockedUntil.Time)
		if l.Locked {
			locked++
		}
	}
	for _, o := range st.Operator {
		back(o.Until.Time)
	}
	tell := func(n int, one, many string) {
		switch n {
		case 0:
		case 1:
			parts = append(parts, "1 "+one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	var gone []string
	for _, c := range st.Combos {
		if !c.Available {
			gone = append(gone, c.ID)
			back(c.AvailableAt.Time)
		}
	}
	if len(gone) > 0 { // what clients lose comes first
		const few = 3
		text := "no target left for " + strings.Join(gone[:min(len(gone), few)], ", ")
		if more := len(gone) - few; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, text)
	}
	if out == known && out > 1 {
		parts = append(parts, fmt.Sprintf("all %d providers out", out))
	} else {
		tell(out, "provider out", "providers out")
	}
	tell(persons, "connection needs a person", "connections need a person")
	tell(cooling, "connection cooling", "connections cooling")
	tell(locked, "model locked", "models locked")
	tell(len(st.Operator), "excluded by an operator", "excluded by an operator")
	switch {
	case len(parts) == 0 && len(st.Lockouts) > 0:
		tell(len(st.Lockouts), "model held back after failures", "models held back after failures")
	case len(parts) == 0 && known == 0:
		return []string{"no provider has a connection with a key"}, yellow
	case len(parts) == 0:
		return []string{"all well"}, green
	}
	if !soonest.IsZero() {
		parts = append(parts, "next back in "+duration(soonest.Sub(st.Now.Time).Milliseconds()))
	}
	if out > 0 || persons > 0 || len(gone) > 0 {
		return parts, red
	}
	return parts, yellow
}
