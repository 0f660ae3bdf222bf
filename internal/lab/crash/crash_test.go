package crash_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
)

// column is one way to run every scenario.
type column struct {
	name, config string
	stream       bool
}

var columns = []column{
	{"stream", defaults, true}, {"whole", defaults, false},
	{"stream+options", options, true}, {"whole+options", options, false},
}

func (c column) want(s scenario) grade {
	w := s.defaults
	if c.config == options {
		w = s.options
	}
	g := w.whole
	if c.stream {
		g = w.stream
	}
	if g == none {
		return pass
	}
	return g
}

func (s scenario) setup(c column, sockets bool) gatewaytest.Setup {
	setup := gatewaytest.Setup{Config: c.config, Providers: labs(sockets), Sockets: sockets}
	if s.alike {
		for i := range setup.Providers {
			setup.Providers[i].Text = alike
		}
	}
	if s.handler != nil {
		setup.Providers = setup.Providers[1:]
		setup.Handlers = map[string]http.Handler{"first": s.handler}
	}
	return setup
}

// TestCrash plays every scenario on virtual time and prints the table. Run it with -v to see it.
func TestCrash(t *testing.T) {
	all := scenarios()
	results := make([][]*run, len(all))
	var mu sync.Mutex
	t.Run("play", func(t *testing.T) {
		for i, s := range all {
			results[i] = make([]*run, len(columns))
			for j, c := range columns {
				if s.streamOnly && !c.stream {
					continue
				}
				t.Run(s.id+" "+c.name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						r := &run{World: gatewaytest.Start(t, s.setup(c, false)), t: t, stream: c.stream, start: time.Now(), grade: pass}
						s.play(r)
						if want := c.want(s); r.grade < want {
							t.Errorf("%s (%s): %v, want %v: %s", s.id, s.what, r.grade, want, strings.Join(r.notes, "; "))
						}
						mu.Lock()
						defer mu.Unlock()
						results[i][j] = r
					})
				})
			}
		}
	})
	t.Log("\n" + table(all, results))
}

// table prints the verdicts, and under it why some marks are not full.
func table(all []scenario, results [][]*run) string {
	var b, why strings.Builder
	fmt.Fprintf(&b, "%-4s %-40s", "", "scenario")
	for _, c := range columns {
		fmt.Fprintf(&b, " %-14s", c.name)
	}
	b.WriteString("\n")
	count := make([]map[grade]int, len(columns))
	for i, s := range all {
		fmt.Fprintf(&b, "%-4s %-40s", s.id, s.what)
		for j, c := range columns {
			g := none
			if r := results[i][j]; r != nil {
				g = r.grade
				if g < pass {
					fmt.Fprintf(&why, "%s %s: %s", s.id, c.name, strings.Join(r.notes, "; "))
					if w := map[bool]string{false: s.defaults.why, true: s.options.why}[c.config == options]; w != "" {
						fmt.Fprintf(&why, " (%s)", w)
					}
					why.WriteString("\n")
				}
			}
			if count[j] == nil {
				count[j] = map[grade]int{}
			}
			count[j][g]++
			fmt.Fprintf(&b, " %-14s", g)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%-4s %-40s", "", "pass, part, fail")
	for j := range columns {
		fmt.Fprintf(&b, " %-14s", fmt.Sprint(count[j][pass], ", ", count[j][part], ", ", count[j][fail]))
	}
	return b.String() + "\n" + why.String()
}

// TestCrashOnSockets plays the quick scenarios again on loopback sockets and real time.
func TestCrashOnSockets(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		for _, c := range columns[:2] {
			if !s.quick || s.streamOnly && !c.stream {
				continue
			}
			t.Run(s.id+" "+c.name, func(t *testing.T) {
				t.Parallel()
				r := &run{World: gatewaytest.Start(t, s.setup(c, true)), t: t, stream: c.stream, start: time.Now(), grade: pass}
				s.play(r)
				if want := c.want(s); r.grade < want {
					t.Errorf("%s (%s): %v, want %v: %s", s.id, s.what, r.grade, want, strings.Join(r.notes, "; "))
				}
			})
		}
	}
}
