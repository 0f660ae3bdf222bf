package alert

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// TestDeskDoesNotFlood: however a subject flaps, it is told of at most once in the quiet time, changes alternate, and
// once it has been as it is for long enough, that has been told.
func TestDeskDoesNotFlood(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Subject{Event: "breaker", Provider: "p"}
		if rapid.Bool().Draw(t, "combo") {
			s = Subject{Event: "no_target", Combo: "c"}
		}
		var d desk
		now := time.Unix(1e9, 0)
		bad := rapid.Bool().Draw(t, "at the start")
		d.begin(map[Subject]Condition{s: {Bad: bad}}, now)
		told, last := bad, time.Time{}
		hear := func(reports []report) {
			for _, r := range reports {
				if r.Bad == told {
					t.Fatal("the same was told twice")
				}
				if now.Sub(last) < quiet {
					t.Fatalf("told again after %v", now.Sub(last))
				}
				told, last = r.Bad, now
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "later")))
			if rapid.IntRange(0, 2).Draw(t, "flaps") > 0 {
				bad = !bad
			}
			hear(d.update(map[Subject]Condition{s: {Bad: bad}}, now))
		}
		now = now.Add(quiet + proof)
		hear(d.due(now, false))
		if told != bad {
			t.Fatalf("it is %v, and that was not told", bad)
		}
		if _, waits := d.next(); waits {
			t.Fatal("something waits still")
		}
	})
}

// calm lets time pass until nothing happens any more.
func calm(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// hook takes messages as a receiver would; answer says what to answer to each, nil means 200.
type hook struct {
	mu     sync.Mutex
	got    []Message
	at     []time.Duration
	begin  time.Time
	signed []string
	answer func(n int) (int, error)
}

func (h *hook) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = append(h.at, time.Since(h.begin).Round(time.Second))
	status := 200
	if h.answer != nil {
		if status, err = h.answer(len(h.at)); err != nil {
			return nil, err
		}
	}
	if status == 200 {
		var m Message
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		h.got = append(h.got, m)
		h.signed = append(h.signed, r.Header.Get(SignatureHeader)+" "+string(body))
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}}, nil
}

func (h *hook) types() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for i, m := range h.got {
		all = append(all, fmt.Sprintf("%s@%v", m.Type, h.at[i]))
	}
	return strings.Join(all, " ")
}

// One failure opens a breaker, so that the Alerter cannot look in the middle of opening one.
const yaml = `
resilience: {breaker: {failure_threshold: 1}}
alerts: [{url: "https://hooks.example/T0/secret-path", secret: signing-secret%s}]
providers:
  p: {base_url: "http://localhost:1/v1", models: [m, n], connections: [{id: k1, api_key: upstream-secret}, {id: k2, api_key: other-secret}]}
  q: {base_url: "http://localhost:2/v1", models: [m], connections: [{id: k, api_key: third-secret}]}
combos:
  both: {targets: [p/m, q/m]}
  one: {targets: [{target: p/n, connection: k1}]}
`

func parse(t *testing.T, more string) *config.Config {
	t.Helper()
	cfg, _, err := config.Parse("omniroute.yaml", fmt.Appendf(nil, yaml, more), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func start(t *testing.T, h *hook, more string) (*Alerter, *resilience.Engine, *strings.Builder) {
	t.Helper()
	cfg := parse(t, more)
	e, err := resilience.New(resilience.Options{Config: route.EngineConfig(cfg)})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	a := New(e, slog.New(slog.NewTextHandler(&log, nil)))
	h.begin = time.Now()
	a.client.Transport = h
	a.gateway = "host"
	a.Configure(cfg)
	a.Start()
	return a, e, &log
}

func open(e *resilience.Engine, provider, connection string) {
	e.RecordFailure(resilience.Key{Provider: provider, Connection: connection, Model: "m"}, resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
}

// TestWhatIsTold: a breaker, a quarantine and a combo without target, each when it begins and when it is over, signed,
// in words, and without any secret.
func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hook{}
		a, e, log := start(t, h, "")
		calm(time.Minute)
		open(e, "q", "k")
		calm(10 * time.Minute)
		e.Reset(resilience.Key{Provider: "q"}, false)
		calm(10 * time.Minute)
		e.RecordFailure(resilience.Key{Provider: "p", Connection: "k1", Model: "n"},
			resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindBilling, Quarantine: true, Evidence: "upstream-secret has no credit"})
		calm(10 * time.Minute)
		e.Reset(resilience.Key{Provider: "p", Connection: "k1"}, false)
		calm(10 * time.Minute)
		a.Stop(t.Context())
		// (A second later while a combo is out, since then the view is looked at all the time.)
		const want = "breaker.opened@1m0s breaker.closed@11m0s quarantine.began@21m0s no_target.began@21m10s quarantine.ended@31m1s no_target.ended@31m11s"
		if got := h.types(); got != want {
			t.Errorf("told\n%s\nwant\n%s", got, want)
		}
		if s := h.got[0]; s.Subject.Provider != "q" || s.Kind != "server_error" || s.Text != "[host] The circuit breaker of q is open (server_error): it gets nothing but probes." {
			t.Errorf("%+v", s)
		}
		if s := h.got[3]; s.Subject.Combo != "one" || s.Kind != "billing" || !strings.Contains(s.Text, "The combo one has no target left (billing)") {
			t.Errorf("%+v", s)
		}
		for _, s := range h.signed {
			signature, body, _ := strings.Cut(s, " ")
			var at int64
			var sum string
			if _, err := fmt.Sscanf(signature, "t=%d,v1=%s", &at, &sum); err != nil {
				t.Fatal(err)
			}
			mac := hmac.New(sha256.New, []byte("signing-secret"))
			fmt.Fprintf(mac, "%d.%s", at, body)
			if hex.EncodeToString(mac.Sum(nil)) != sum {
				t.Errorf("the signature %s is not that of %s", signature, body)
			}
			if strings.Contains(body, "secret") {
				t.Errorf("a secret is in %s", body)
			}
		}
		if sent, dropped := a.Counts(); sent != 6 || dropped != 0 || strings.Contains(log.String(), "secret") {
			t.Errorf("%d sent, %d dropped\n%s", sent, dropped, log)
		}
	})
}

// TestFlapping: a breaker that opens and closes all the time is told of once in five minutes, and how it is in the end.
func TestFlapping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hook{}
		a, e, _ := start(t, h, ", events: [breaker]")
		for range 100 {
			open(e, "q", "k")
			calm(3 * time.Second)
			e.Reset(resilience.Key{Provider: "q"}, false)
			calm(3 * time.Second)
		}
		calm(time.Hour)
		if got := h.types(); got != "breaker.opened@0s breaker.closed@5m0s" && got != "breaker.opened@0s breaker.closed@5m3s" {
			t.Errorf("told %s", got)
		}
		if h.got[1].Changes < 50 || !strings.Contains(h.got[1].Text, "times since the last alert") {
			t.Errorf("%+v", h.got[1])
		}
		a.Stop(t.Context())
	})
}

// TestDelivery: failures are repeated in order with growing pauses, refusals for good are not, redirects are not
// followed, the queue is bounded, a reload keeps what waits, and a stop delivers what is left.
func TestDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hook{answer: func(n int) (int, error) {
			switch {
			case n <= 2:
				return 503, nil
			case n == 3:
				return 0, &http.MaxBytesError{} // any error of a transport
			}
			return 200, nil
		}}
		a, e, log := start(t, h, ", name: on-call, events: [breaker, quarantine]")
		open(e, "q", "k")
		calm(2 * time.Second)
		a.Configure(parse(t, ", name: on-call, events: [breaker, quarantine]"))
		calm(time.Minute)
		if got := fmt.Sprint(h.at); got != "[0s 1s 3s 7s]" || len(h.got) != 1 {
			t.Errorf("tried at %s, %d came", got, len(h.got))
		}
		if !strings.Contains(log.String(), "receiver=on-call") || strings.Contains(log.String(), "secret") {
			t.Error(log.String())
		}
		for status, want := range map[int]string{301: "redirects are not followed", 404: "answers 404"} {
			h.answer = func(int) (int, error) { return status, nil }
			before := len(h.at)
			e.RecordFailure(resilience.Key{Provider: "p", Connection: "k1"}, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindAuth, Quarantine: true})
			calm(20 * time.Minute)
			e.Reset(resilience.Key{}, false)
			calm(20 * time.Minute)
			if n := len(h.at) - before; n < 2 || n > 3 || !strings.Contains(log.String(), want) { // it began and ended, and so did, once, the breaker's
				t.Errorf("%d: %d tries\n%s", status, n, log)
			}
		}
		h.answer = func(int) (int, error) { return 0, errors.New("no route") }
		for range maxQueue + 10 {
			a.tell([]report{{Subject: Subject{Event: "breaker", Provider: "q"}}})
		}
		if _, dropped := a.Counts(); dropped < 9 {
			t.Errorf("%d were dropped from the full queue", dropped)
		}
		h.mu.Lock()
		h.answer = nil
		h.got = nil
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		a.Stop(ctx)
		if len(h.got) < maxQueue-1 {
			t.Errorf("%d of %d were delivered at the stop", len(h.got), maxQueue)
		}
	})
}

// TestStopDoesNotHang with a receiver that does not answer.
func TestStopDoesNotHang(t *testing.T) {
	t.Parallel()
	came, hang := make(chan struct{}, 1), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came <- struct{}{}; <-hang }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(hang) })
	a, e, _ := start(t, &hook{}, "")
	a.client.Transport = &http.Transport{}
	cfg := parse(t, "")
	cfg.Alerts[0].URL = config.NewSecret(s.URL)
	a.Configure(cfg)
	open(e, "q", "k")
	<-came
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a.Stop(ctx)
	if _, dropped := a.Counts(); dropped == 0 {
		t.Error("nothing was given up")
	}
}
