package sdk

import (
	"fmt"
	"testing"
	"time"

	"omniroute/e2e/harness"
	"omniroute/e2e/upstream"
)

const (
	clientKey   = "e2e-client-key-0123456789abcdef"
	calls       = 30
	concurrency = 5

	// wasted is how many attempts an outage may cost from a cold start: the breaker's five
	// failures, what was in flight beside them, and the first early probes.
	wasted = 12
	// tokenTimeout is the configured patience with a provider that says nothing, and long enough for
	// one that is well to answer on a slow machine. Two connections of it may cost that much each
	// before the request is elsewhere.
	tokenTimeout = 5 * time.Second
	slowestHung  = 2*tokenTimeout + 3*time.Second
)

// scene is a gateway with two providers and three keys: the first provider has k1 and k2, the
// second k3.
type scene struct {
	*harness.Gateway
	first, second *upstream.Server
}

func newScene(t *testing.T) scene {
	t.Helper()
	binary := harness.Binary(t) // before anything else is started: it may skip
	first, second := upstream.New(t, "key-1", "key-2"), upstream.New(t, "key-3")
	g := harness.Start(t, harness.Options{Binary: binary, Config: fmt.Sprintf(`
client_keys: [%q]
store: sqlite:omniroute.db
providers:
  first:
    dialect: openai
    base_url: %s
    models: [m]
    connections:
      - {id: k1, api_key: key-1}
      - {id: k2, api_key: key-2}
  second:
    dialect: openai
    base_url: %s
    models: [m]
    connections:
      - {id: k3, api_key: key-3}
combos:
  chat:
    strategy: priority
    targets: [first/m, second/m]
relay: {first_token_timeout: %v, answer_timeout: %v}
`, clientKey, first.URL, second.URL, tokenTimeout, tokenTimeout)})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("status: %s", g.Status())
		}
	})
	return scene{g, first, second}
}

func (s scene) job(n int, stream bool) call {
	return call{baseURL: s.URL + "/v1", key: clientKey, model: "chat", n: n, concurrency: concurrency, stream: stream}
}

// outages are the ways in which the first provider fails, and what each may cost.
var outages = []struct {
	name string
	mode upstream.Mode
	keys []string // of the first provider; nil means all
	// most is how many attempts the failing keys may see.
	most int
	// secondIdle says that the second provider has no reason to be asked.
	secondIdle bool
	slowest    time.Duration
}{
	// Each worker may have one request in flight on the key before the first 429 is back.
	{"rate limit", upstream.RateLimit, []string{"key-1"}, concurrency, true, 3 * time.Second},
	{"server errors", upstream.ServerError, nil, wasted, false, 3 * time.Second},
	{"hung", upstream.Hang, nil, wasted, false, slowestHung},
}

// TestOutageIsInvisible starts cold and fails one provider: no client sees it, and the failing
// keys are left alone.
func TestOutageIsInvisible(t *testing.T) {
	t.Parallel()
	for _, o := range outages {
		for _, cl := range clients {
			for _, stream := range []bool{false, true} {
				t.Run(o.name+"/"+cl.name+"/"+kindOfCall(stream), func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					s.first.Set(o.mode, o.keys...)
					job := s.job(calls, stream)
					lag := harness.Lag(t)
					results := cl.run(t, job)
					late := lag()
					wantAllGood(t, job, results)

					failing := s.first.Total()
					if o.keys != nil {
						failing = s.first.Calls()[o.keys[0]]
					}
					t.Logf("%d attempts on what fails, at most %d; first %v, second %v; %s",
						failing, o.most, s.first.Calls(), s.second.Calls(), summary(results))
					if failing > o.most {
						t.Errorf("%d attempts on what fails, want at most %d", failing, o.most)
					}
					if failing == 0 {
						t.Error("what fails was never tried: the test shows nothing")
					}
					if n := s.second.Total(); o.secondIdle && n > 0 {
						t.Errorf("%d calls went to the second provider while the first had a good key", n)
					}
					if d := slowest(results); d > o.slowest+late {
						t.Errorf("the slowest call took %v, want at most %v and the %v that the machine took", d, o.slowest, late)
					}
				})
			}
		}
	}
}

// TestOutagesInARow leaves the gateway running while the first provider goes from one trouble to
// the next and recovers: no call fails, and the first provider gets its traffic back by itself.
func TestOutagesInARow(t *testing.T) {
	t.Parallel()
	for _, cl := range clients {
		t.Run(cl.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			before := 0
			for _, o := range outages {
				s.first.Set(upstream.Answer)
				s.first.Set(o.mode, o.keys...)
				for _, stream := range []bool{false, true} {
					job := s.job(calls/2, stream)
					results := cl.run(t, job)
					wantAllGood(t, job, results)
					t.Logf("%s, %s: %d attempts on the first provider; %s",
						o.name, kindOfCall(stream), s.first.Total()-before, summary(results))
					before = s.first.Total()
				}
			}

			s.first.Set(upstream.Answer)
			deadline := time.Now().Add(backInService)
			for {
				job := s.job(1, false)
				results := cl.run(t, job)
				wantAllGood(t, job, results)
				if t.Failed() {
					return
				}
				if results[0].Provider == "first" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the first provider is well and got no call for %v", backInService)
				}
			}
		})
	}
}

// backInService is above the longest early-probe pause and the reset timeout of an outage that
// was seconds long.
const backInService = 40 * time.Second

// TestCutIsNeverHidden ends the only provider's streams in the middle: after content was shown the
// client must get an error, not an answer that looks whole.
func TestCutIsNeverHidden(t *testing.T) {
	t.Parallel()
	for _, cl := range clients {
		t.Run(cl.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.first.Set(upstream.Cut)
			job := s.job(1, true)
			for _, r := range cl.run(t, job) {
				if r.OK || r.Finish != "" {
					t.Errorf("an answer that was cut looks whole: %+v", r)
				}
			}
			if n := s.second.Total(); n != 0 {
				t.Errorf("%d calls on the second provider: a begun answer was started again", n)
			}

			// A plain answer that is cut was not shown to anybody: it moves on.
			job = s.job(1, false)
			wantAllGood(t, job, cl.run(t, job))
		})
	}
}

// TestExclusionSurvivesKill rate-limits a key, kills the gateway and starts it again: the key is
// left alone for as long as it asked for.
func TestExclusionSurvivesKill(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.first.Set(upstream.RateLimit, "key-1")
	job := s.job(calls, false)
	job.concurrency = 1
	wantAllGood(t, job, runGo(t, job))
	asked := s.first.Calls()["key-1"]
	if asked == 0 {
		t.Fatal("the limited key was never tried: the test shows nothing")
	}
	// What happened in the last quarter of a second may be lost.
	harness.Rest(t, 500*time.Millisecond)
	s.Kill()
	s.Start()
	wantAllGood(t, job, runGo(t, job))
	if again := s.first.Calls()["key-1"]; again != asked {
		t.Errorf("the limited key was asked %d times before the kill and %d times after it", asked, again-asked)
	}
}
