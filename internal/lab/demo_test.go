package lab_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"omniroute/internal/lab"
)

// TestDemoSchedule runs two rounds and compares each second's answers of every target with what
// the schedule says.
func TestDemoSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n lab.Net
		tr := n.Transport()
		demo := lab.NewDemo(lab.DemoOptions{Listen: func(_ context.Context, id string) (net.Listener, error) { return n.Listen(id + ".example") }})
		if err := demo.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			tr.CloseIdleConnections()
			if err := demo.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		start := time.Now()
		due := func(at time.Duration, provider, connection, model string) string {
			for _, s := range lab.DemoSchedule() {
				if at >= s.From && at < s.To && s.Provider == provider &&
					(s.Connection == "" || s.Connection == connection) && (s.Model == "" || s.Model == model) {
					return s.Fault.Name
				}
			}
			return "ok"
		}
		for second := range 200 {
			time.Sleep(time.Until(start.Add(time.Duration(second)*time.Second + time.Millisecond)))
			at := time.Since(start) % lab.DemoPeriod
			well := 0
			for _, p := range demo.Providers() {
				if p.ID == "fault" {
					continue
				}
				for _, c := range p.Connections {
					for _, m := range p.Models {
						h := &harness{t: t, p: p.Provider, base: p.BaseURL, client: &http.Client{Transport: tr}, key: c.Key}
						ctx, cancel := context.WithCancel(t.Context())
						done := make(chan struct{})
						before := p.Provider.Total()
						go func() {
							defer close(done)
							h.ask(ctx, m, true)
						}()
						synctest.Wait()
						cancel()
						<-done
						calls := p.Provider.Calls()
						want := due(at, p.ID, c.ID, m)
						if got := calls[len(calls)-1]; p.Provider.Total() != before+1 || got.Outcome != want || got.Connection != c.ID {
							t.Fatalf("at %v %s/%s/%s: got %+v, want %s", at, p.ID, c.ID, m, got, want)
						}
						if want == "ok" || strings.HasPrefix(want, "slow") {
							well++
						}
					}
				}
			}
			if well == 0 {
				t.Errorf("at %v no target is well", at)
			}
		}
	})
}

// TestDemoOnLoopback starts the real thing.
func TestDemoOnLoopback(t *testing.T) {
	t.Parallel()
	demo := lab.NewDemo(lab.DemoOptions{})
	if err := demo.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { demo.Stop(context.Background()) })
	if err := demo.Start(t.Context()); err == nil {
		t.Error("it started twice")
	}
	providers := demo.Providers()
	if len(providers) != 3 {
		t.Fatalf("%d providers", len(providers))
	}
	config := demo.Config()
	for _, p := range providers {
		if !strings.HasPrefix(p.BaseURL, "http://127.0.0.1:") || !strings.Contains(config, p.BaseURL) {
			t.Errorf("%s is at %s, not in\n%s", p.ID, p.BaseURL, config)
		}
	}
	if err := demo.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if len(demo.Providers()) != 0 {
		t.Error("it stopped and is still there")
	}
	if err := demo.Start(t.Context()); err != nil {
		t.Errorf("starting again: %v", err)
	}
}

func TestDemoThatCannotListen(t *testing.T) {
	t.Parallel()
	broken := errors.New("no more ports")
	demo := lab.NewDemo(lab.DemoOptions{Listen: func(ctx context.Context, id string) (net.Listener, error) {
		if id == "contoso" {
			return nil, broken
		}
		return lab.Pipe(), nil
	}})
	if err := demo.Start(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "contoso") {
		t.Errorf("got %v", err)
	}
	if len(demo.Providers()) != 0 {
		t.Error("something was left behind")
	}
}

// TestDemoFaults asks the provider whose models are faults.
func TestDemoFaults(t *testing.T) {
	t.Parallel()
	demo := lab.NewDemo(lab.DemoOptions{})
	if err := demo.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr := new(http.Transport)
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		demo.Stop(context.Background())
	})
	p := demo.Providers()[2]
	h := &harness{t: t, p: p.Provider, base: p.BaseURL, client: &http.Client{Transport: tr}, key: p.Connections[0].Key}
	if r := h.ask(t.Context(), "429:7s", false); r.Status != 429 || r.Header.Get("Retry-After") != "7" {
		t.Errorf("got %d %v", r.Status, r.Header)
	}
}

// TestDemoTable holds the table that people see.
func TestDemoTable(t *testing.T) {
	t.Parallel()
	const want = `
TIME       WHERE               WHAT HAPPENS                           WATCH
0:10-0:30  northwind/alpha     429 with Retry-After: 2                alpha cools for 2s, 2s, 4s, 8s, 16s; beta answers
0:20-0:35  contoso             429 without a hint                     nothing, unless you ask for contoso/comet: gamma cools for 1s, 2s, 4s, 8s
0:45-1:05  northwind           503 to everything                      breaker DEGRADED, then OPEN; HALF_OPEN every 10s; contoso answers
1:05-1:10  northwind           back, but slow                         one probe is let through, its first content closes the breaker
1:15-1:24  northwind/*/aurora  404, the model does not exist          aurora is locked on both keys for 10s; borealis answers
1:28-1:36  northwind/beta      200, then an error as the first event  alpha answers; the client notices nothing
1:40       everywhere          the round begins again
`
	if d := cmp.Diff(want, "\n"+lab.DemoTable()); d != "" {
		t.Error(d)
	}
}
