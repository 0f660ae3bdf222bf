package screen

import (
	"fmt"
	"io"

	"omniroute/internal/admin"
	"omniroute/resilience"
)

// stack writes for terminals that are too narrow for columns: what belongs together is indented below
// its name.
func (s Style) stack(w io.Writer, st admin.Status) {
	line := func(indent int, name string, state cell) {
		in := fmt.Sprintf("%*s", indent, "")
		name = s.fit(name, s.width()/2-indent)
		fmt.Fprintln(w, in+name+" "+s.paint(state.col, s.fit(state.text, s.width()-indent-len([]rune(name))-1)))
	}
	for i := range st.Providers {
		p := &st.Providers[i]
		line(0, p.ID, breakerCell(p.Breaker))
		if len(p.Connections) == 0 {
			line(2, "-", cell{"no connection has a key", yellow})
		}
		for _, c := range p.Connections {
			line(2, c.ID, s.connectionCell(c))
			if c.Breaker != nil && c.Breaker.State != resilience.Closed {
				line(4, "breaker", breakerCell(*c.Breaker))
			}
		}
	}
	for i, l := range st.Lockouts {
		if i == 0 {
			fmt.Fprintln(w, s.paint(dim, "MODELS OUT"))
		}
		fmt.Fprintln(w, s.fit(resilience.Key{Provider: l.Provider, Connection: l.Connection, Model: l.Model}.String(), s.width()))
		line(2, l.Kind.String(), cell{duration(l.RetryAfterMs), yellow})
	}
	for i, o := range st.Operator {
		if i == 0 {
			fmt.Fprintln(w, s.paint(dim, "EXCLUDED BY AN OPERATOR"))
		}
		fmt.Fprintln(w, s.paint(cyan, s.fit(o.Key.String(), s.width())))
		line(2, left(o, st.Now.Time), cell{o.Reason, ""})
	}
	for i, n := range st.Nodes {
		if i == 0 {
			fmt.Fprintln(w, s.paint(dim, "NODES"))
		}
		seen := cell{duration(n.AgeMs) + " ago", green}
		if n.Stale {
			seen = cell{"stale, " + seen.text, red}
		}
		line(0, n.ID, seen)
	}
}
