package screen

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"omniroute/internal/admin"
	"omniroute/resilience"
)

var (
	providerColumns = []int{13, 23, 13}
	lockoutColumns  = []int{40, 18, 12}
)

// Status writes the table of providers, connections and lockouts of the gateway at address.
func (s Style) Status(w io.Writer, st admin.Status, address string) {
	s.headline(w, st, address)
	s.summary(w, st)
	fmt.Fprintln(w)
	if s.stacked() {
		s.stack(w, st)
		return
	}
	providerColumns := s.columns(providerColumns)
	s.row(w, providerColumns, cell{"PROVIDER", dim}, cell{"BREAKER", dim}, cell{"CONNECTION", dim}, cell{"STATE (L: backoff level)", dim})
	for _, p := range st.Providers {
		name, breaker := cell{p.ID, bold}, breakerCell(p.Breaker)
		if len(p.Connections) == 0 {
			s.row(w, providerColumns, name, breaker, cell{"-", ""}, cell{"no connection has a key", yellow})
		}
		for _, c := range p.Connections {
			if c.Breaker != nil {
				if breaker.text != "" && breaker.text != "CLOSED" {
					s.row(w, providerColumns, name, breaker)
					name = cell{}
				}
				breaker = breakerCell(*c.Breaker)
			}
			s.row(w, providerColumns, name, breaker, cell{c.ID, ""}, s.connectionCell(c))
			name, breaker = cell{}, cell{}
		}
	}
	s.lockouts(w, st.Lockouts)
	s.operator(w, st)
	s.nodes(w, st)
}

// headline is the gateway itself.
func (s Style) headline(w io.Writer, st admin.Status, address string) {
	store := cell{"store " + st.Persistence, ""}
	switch st.Persistence {
	case "degraded":
		store.col = red
	case "off":
		store.text = "no store"
	}
	facts := []cell{{st.Now.Local().Format("15:04:05"), ""}, store, {fmt.Sprintf("%d waiting", st.Waiting), ""}}
	switch st.Cluster {
	case resilience.ClusterOK:
		facts = append(facts, cell{plural(st.NodeCount, "node"), ""})
	case resilience.ClusterIsolated:
		facts = append(facts, cell{"isolated", red})
	}
	if st.Panic {
		facts = append(facts, cell{"last resort in use", red})
	}
	if st.Local {
		facts = append(facts, cell{"local network out", red})
	}
	half := min(30, s.width()/2)
	fmt.Fprintln(w, s.paint(bold, s.fit("omniroute "+st.Version, half))+"  "+s.fit(address, s.width()-2-half))
	s.flow(w, facts)
}

func breakerCell(b resilience.BreakerStatus) cell {
	c := cell{string(b.State), green}
	kind := ""
	if b.LastKind != nil {
		kind = " " + b.LastKind.String()
	}
	switch b.State {
	case resilience.Degraded:
		c = cell{fmt.Sprintf("%s %d/%d", b.State, b.Failures, b.FailureThreshold), yellow}
	case resilience.Open:
		c = cell{fmt.Sprintf("%s %s%s", b.State, duration(b.RetryAfterMs), kind), red}
	case resilience.HalfOpen:
		c.col = yellow
	}
	return c
}

func (s Style) connectionCell(c resilience.ConnectionStatus) cell {
	out := cell{string(c.State), yellow}
	switch c.State {
	case resilience.Ready:
		out.col = green
	case resilience.Quarantined:
		out.col = red
	case resilience.Excluded:
		out.col = cyan
	}
	if len(c.Models) > 0 && c.State != resilience.Ready {
		out.text += " (" + s.models(c.Models) + " only)" // first, so that it is never cut off
	}
	if c.RetryAfterMs > 0 {
		out.text += " " + duration(c.RetryAfterMs)
	}
	if c.Kind != nil {
		out.text += " " + c.Kind.String()
	}
	if c.BackoffLevel > 0 {
		out.text += fmt.Sprintf(" L%d", c.BackoffLevel)
	}
	return out
}

// models names models, or counts them where the names would leave no room for the rest.
func (s Style) models(names []string) string {
	const room = 10
	text := strings.Join(names, ", ")
	switch {
	case s.Whole || utf8.RuneCountInString(text) <= room:
		return text
	case len(names) == 1:
		return "1 model"
	}
	return fmt.Sprintf("%d models", len(names))
}

func (s Style) lockouts(w io.Writer, all []resilience.LockoutStatus) {
	if len(all) == 0 {
		return
	}
	lockoutColumns := s.columns(lockoutColumns)
	fmt.Fprintln(w)
	s.row(w, lockoutColumns, cell{"MODEL OUT", dim}, cell{"KIND", dim}, cell{"FAILURES", dim}, cell{"BACK IN", dim})
	for _, l := range all {
		failures := cell{fmt.Sprint(l.Failures), ""}
		if l.Locked {
			failures.text += " locked"
		}
		name := resilience.Key{Provider: l.Provider, Connection: l.Connection, Model: l.Model}.String()
		s.row(w, lockoutColumns, cell{name, ""}, cell{l.Kind.String(), ""}, failures, cell{duration(l.RetryAfterMs), yellow})
	}
}

func (s Style) operator(w io.Writer, st admin.Status) {
	if len(st.Operator) == 0 {
		return
	}
	fmt.Fprintln(w)
	columns := s.columns([]int{40, 18})
	s.row(w, columns, cell{"EXCLUDED BY AN OPERATOR", dim}, cell{"FOR", dim}, cell{"REASON", dim})
	for _, o := range st.Operator {
		s.row(w, columns, cell{o.Key.String(), cyan}, cell{left(o, st.Now.Time), ""}, cell{o.Reason, ""})
	}
}

// left is how long an operator's exclusion still stands.
func left(o resilience.OperatorStatus, now time.Time) string {
	if o.Until.IsZero() {
		return "until deleted"
	}
	return duration(max(o.Until.Sub(now).Milliseconds(), 0))
}
