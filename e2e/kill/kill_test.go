// Package kill ends the real gateway with SIGKILL at random moments under load, again and again,
// and compares what it reports after the restart with what it had reported before.
package kill

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"omniroute/e2e/harness"
)

// rounds is how often the gateway is killed. OMNIROUTE_KILLS changes it: 200 is the full proof, which
// takes a few minutes.
const rounds = 25

// lost is how much of the last moments a crash may lose.
const lost = 250 * time.Millisecond

const config = `
store: sqlite:state.db
providers:
  one:
    base_url: %[1]q
    models: [a, b, c]
    connections: [{id: k1, api_key: "429-7"}, {id: k2, api_key: "429-0"}, {id: k3, api_key: "ok-1"}]
  two:
    base_url: %[1]q
    models: [a, b]
    connections: [{id: k4, api_key: "500-1"}, {id: k5, api_key: "404-1"}]
  three:
    base_url: %[1]q
    models: [a]
    connections: [{id: k6, api_key: "some-1"}, {id: k7, api_key: "401-1"}]
relay: {max_wait: 0s, patience: 0s}
`

// upstream answers by the key: a status, and for 429 how long to wait.
func upstream(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what, arg, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "-")
		if what == "some" && rand.IntN(3) > 0 {
			what = "500"
		}
		w.Header().Set("Content-Type", "application/json")
		switch status, err := strconv.Atoi(what); {
		case err != nil:
			fmt.Fprint(w, `{"id":"x","object":"chat.completion","model":"a","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
		case status == 404:
			w.WriteHeader(404)
			fmt.Fprint(w, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`)
		default:
			if status == 429 && arg != "0" {
				w.Header().Set("Retry-After", arg)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, `{"error":{"message":"no","type":"error"}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// load sends requests until stop is closed.
func load(g *harness.Gateway, stop chan struct{}) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			models := []string{"one/a", "one/b", "one/c", "two/a", "two/b", "three/a"}
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]}`, models[n%len(models)])
				resp, err := http.Post(g.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
		})
	}
	return &wg
}

// report is a status reduced to what a restart must bring back: by gate, what is said of it.
type report struct {
	at    time.Time
	gates map[string]string
	until map[string]time.Time
}

func ask(t *testing.T, g *harness.Gateway) (report, bool) {
	t.Helper()
	resp, err := http.Get(g.URL + "/admin/v1/status")
	if err != nil {
		return report{}, false
	}
	defer func() { _ = resp.Body.Close() }()
	var s struct {
		Now       time.Time
		Providers []struct {
			ID      string
			Breaker struct {
				State    string
				Failures int
				Cycles   int        `json:"open_cycles"`
				ResetAt  *time.Time `json:"reset_at"`
			}
			Connections []struct {
				ID, State string
				Kind      *string
				Until     *time.Time `json:"rate_limited_until"`
				Level     int        `json:"backoff_level"`
				Models    []string
			}
		}
		Lockouts []struct {
			Provider, Connection, Model, Kind string
			Failures                          int
			Until                             time.Time `json:"locked_until"`
		}
	}
	if json.NewDecoder(resp.Body).Decode(&s) != nil {
		return report{}, false
	}
	r := report{at: s.Now, gates: map[string]string{}, until: map[string]time.Time{}}
	add := func(gate string, until *time.Time, format string, args ...any) {
		r.gates[gate] = fmt.Sprintf(format, args...)
		if until != nil {
			// To a hundredth of a second: times cross a file in whole milliseconds.
			r.until[gate] = *until
			r.gates[gate] += " until " + until.Round(10*time.Millisecond).Format("05.00")
		}
	}
	for _, p := range s.Providers {
		state := p.Breaker.State
		if state == "HALF_OPEN" { // loads as an OPEN that is due, which looks the same
			state = "OPEN"
		}
		add(p.ID, p.Breaker.ResetAt, "%s failures %d cycles %d", state, p.Breaker.Failures, p.Breaker.Cycles)
		for _, c := range p.Connections {
			kind := ""
			if c.Kind != nil {
				kind = *c.Kind
			}
			state := c.State
			if state == "probing" { // a probe does not survive its process
				state = "ready"
			}
			add(p.ID+"/"+c.ID, c.Until, "%s %s level %d %v", state, kind, c.Level, c.Models)
		}
	}
	for _, l := range s.Lockouts {
		add("lock "+l.Provider+"/"+l.Connection+"/"+l.Model, &l.Until, "%s failures %d", l.Kind, l.Failures)
	}
	return r, true
}

func TestWhatWasReportedComesBack(t *testing.T) {
	t.Parallel()
	n := rounds
	if v := os.Getenv("OMNIROUTE_KILLS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatalf("OMNIROUTE_KILLS: %v", err)
		}
	}
	g := harness.Start(t, harness.Options{Config: fmt.Sprintf(config, upstream(t))})
	compared, shut := 0, 0
	for round := range n {
		stop := make(chan struct{})
		wg := load(g, stop)
		quiet := round%2 == 0 // every other time nothing happens in the last moments
		var seen []report
		end := time.Now().Add(time.Duration(50+rand.IntN(500)) * time.Millisecond)
		for len(seen) == 0 || time.Now().Before(end) {
			if r, ok := ask(t, g); ok {
				seen = append(seen, r)
			}
		}
		if quiet {
			close(stop)
			wg.Wait()
			for began := len(seen); passedIn(seen[began:]) < lost+50*time.Millisecond; {
				if r, ok := ask(t, g); ok {
					seen = append(seen, r)
				}
			}
		}
		g.Kill()
		if !quiet {
			close(stop)
			wg.Wait()
		}
		g.Start()
		back, ok := ask(t, g)
		if !ok {
			t.Fatalf("round %d: no status after the restart", round)
		}
		last := seen[len(seen)-1]
		for gate, now := range last.gates {
			if !settled(seen, gate, last) || passed(last.until[gate], back.at) {
				continue
			}
			compared++
			if strings.Contains(now, "until") {
				shut++
			}
			if !same(now, back.gates[gate], last.until[gate], back.until[gate]) {
				t.Errorf("round %d, quiet %v: %s was reported as %q and came back as %q", round, quiet, gate, now, back.gates[gate])
			}
		}
		if t.Failed() {
			t.Log(g.Log())
			return
		}
	}
	t.Logf("%d kills, %d gates compared, %d of them shut: all came back as they were reported", n, compared, shut)
	if shut < n {
		t.Errorf("only %d exclusions in %d rounds: the test shows little", shut, n)
	}
}

// passedIn returns how much time has passed in reports. Where one is long in coming the machine has been busy with something
// else or stood still, and what the gateway had to write may have waited as well; so that does not count.
func passedIn(seen []report) (sum time.Duration) {
	for i := 1; i < len(seen); i++ {
		sum += min(seen[i].at.Sub(seen[i-1].at), 50*time.Millisecond)
	}
	return sum
}

// settled says whether all that was reported of a gate in the last moments is the same.
func settled(seen []report, gate string, last report) bool {
	for i := len(seen) - 1; i >= 0; i-- {
		if seen[i].gates[gate] != last.gates[gate] {
			return false
		}
		if passedIn(seen[i:]) >= lost {
			return true
		}
	}
	return false // not known for long enough
}

// passed says whether a gate's time was up when the restarted gateway was asked, or so near that
// it may have been.
func passed(until, now time.Time) bool {
	return !until.IsZero() && until.Sub(now) < 20*time.Millisecond
}

// same compares two reports of a gate, times to within two hundredths of a second.
func same(a, b string, ua, ub time.Time) bool {
	a, _, _ = strings.Cut(a, " until ")
	b, _, _ = strings.Cut(b, " until ")
	d := ua.Sub(ub).Abs()
	return a == b && d <= 20*time.Millisecond
}
