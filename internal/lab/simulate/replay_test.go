package simulate

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/internal/outcomes"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// recordOutage records ten minutes of a gateway with a primary alone, which is down in the middle.
func recordOutage(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	w, err := outcomes.Open(path, 64<<20, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	key := resilience.Key{Provider: "primary", Connection: "main", Model: "large"}
	for i := range 1200 {
		at := start.Add(time.Duration(i) * 500 * time.Millisecond)
		s := telemetry.Story{At: at, Model: "chat", Route: "chat", Dialect: "openai", Stream: true, Usage: dialect.Usage{Input: 1000, Output: 200}}
		r := failover.Record{Key: key, At: at}
		if i >= 400 && i < 800 {
			s.Status, s.Duration = 503, 80*time.Millisecond
			r.Outcome, r.Status, r.Duration = failover.OutcomeFailed, 503, 80*time.Millisecond
			r.Verdict = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError, RetrySame: true, RetryElsewhere: true}
		} else {
			s.Status, s.FirstContent, s.Duration = 200, 700*time.Millisecond, 3*time.Second
			r.Outcome, r.Status, r.FirstContent, r.Duration = failover.OutcomeAnswered, 200, 700*time.Millisecond, 3*time.Second
		}
		s.Attempts = []failover.Record{r}
		w.Observe(s)
	}
	w.Close()
	return path
}

// A fallback would have saved the requests of the outage, and little would have been wasted.
func TestReplay(t *testing.T) {
	t.Parallel()
	path := recordOutage(t)
	rec, err := LoadRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rec.Replay(path, "testdata/fallback.yaml", 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Was.Requests != 1200 || r.Was.Answered != 800 || r.Was.Failed != 400 || r.Was.Wasted != 400 {
		t.Errorf("it was %+v", *r.Was)
	}
	if w := r.Would; w.Requests != 1200 || w.Answered != 1200 || w.Wasted > 60 || w.First.P50 < 690 || w.First.P50 > 710 {
		t.Errorf("it would have been: %d requests, %d answered, %d wasted, first content %v", w.Requests, w.Answered, w.Wasted, w.First)
	}
	if r.Guessed < 300 || r.Guessed > 500 {
		t.Errorf("%d attempts were guessed, want those on the fallback", r.Guessed)
	}
	// What is recorded about the primary holds with the primary alone too.
	alone, err := rec.Replay(path, "testdata/alone.yaml", 1)
	if err != nil {
		t.Fatal(err)
	}
	if a := alone.Would.Answered; a < 750 || a > 850 || alone.Guessed != 0 {
		t.Errorf("alone it would have answered %d of 1200, want about the 800 that it did; %d guessed", a, alone.Guessed)
	}
	var text [2]bytes.Buffer
	for i := range text {
		again, err := rec.Replay(path, "testdata/fallback.yaml", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.WriteText(&text[i]); err != nil {
			t.Fatal(err)
		}
	}
	if text[0].String() != text[1].String() {
		t.Errorf("two replays differ:\n%s\n%s", &text[0], &text[1])
	}
}

// A stated wait ends when it did, whenever it is met again.
func TestReplayKeepsDeadlines(t *testing.T) {
	t.Parallel()
	s := sighting{at: time.Minute, wait: &outcomes.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, Wait: 30_000}}
	s.fate.failure = &resilience.Verdict{}
	for now, want := range map[time.Duration]time.Duration{time.Minute: 30 * time.Second, 70 * time.Second: 20 * time.Second, 50 * time.Second: 40 * time.Second, 2 * time.Minute: 0} {
		if got := s.met(now, true).failure.RetryAfter; got != want {
			t.Errorf("at %v: wait %v, want %v", now, got, want)
		}
	}
}

// A refusal that said how long to wait is met by nobody after that.
func TestReplayForgetsPassedWaits(t *testing.T) {
	t.Parallel()
	key := resilience.Key{Provider: "p", Connection: "a", Model: "m"}
	refused := sighting{at: time.Minute, ends: time.Minute, wait: &outcomes.Verdict{Wait: 5000}, fate: fate{failure: &resilience.Verdict{Kind: resilience.KindRateLimit}}}
	rec := &Recording{seen: map[resilience.Key][]sighting{key: {refused}}}
	for now, want := range map[time.Duration]bool{50 * time.Second: true, 64 * time.Second: true, 65 * time.Second: true, 66 * time.Second: false, 80 * time.Second: false} {
		r := &recorded{Recording: rec, rng: rand.New(rand.NewPCG(1, 1))}
		f := r.receive(nil, key, true, 0, now)
		if got := f.failure != nil; got != want || (r.guessed > 0) == want {
			t.Errorf("at %v: refused %v, %d guessed; want refused %v", now, got, r.guessed, want)
		}
	}
}

// An outage in which hardly an attempt was made, as the gateway sees to it, is an outage to the replay: the many good
// answers before and after it say nothing of its middle.
func TestReplayOfAQuietOutage(t *testing.T) {
	t.Parallel()
	key := resilience.Key{Provider: "p", Connection: "a", Model: "m"}
	var all []sighting
	see := func(at time.Duration, good bool) {
		s := sighting{at: at, ends: at}
		if !good {
			s.fate.failure = &resilience.Verdict{Kind: resilience.KindServerError}
		}
		all = append(all, s)
	}
	for at := 50 * time.Second; at < time.Minute; at += 100 * time.Millisecond {
		see(at, true)
	}
	for _, at := range []time.Duration{60 * time.Second, 62 * time.Second, 66 * time.Second, 74 * time.Second} {
		see(at, false)
	}
	for at := 84 * time.Second; at < 90*time.Second; at += 100 * time.Millisecond {
		see(at, true)
	}
	r := &recorded{Recording: &Recording{seen: map[resilience.Key][]sighting{key: all}}, rng: rand.New(rand.NewPCG(1, 1))}
	for now, want := range map[time.Duration][2]int{ // how many of 1000 fail, at least and at most
		55 * time.Second: {0, 0}, 60 * time.Second: {1000, 1000}, 65 * time.Second: {1000, 1000}, 73 * time.Second: {1000, 1000},
		76 * time.Second: {750, 850}, 82 * time.Second: {150, 250}, 84 * time.Second: {0, 0}, 100 * time.Second: {0, 0},
	} {
		failed := 0
		for range 1000 {
			if r.receive(nil, key, true, 0, now).failure != nil {
				failed++
			}
		}
		if failed < want[0] || failed > want[1] {
			t.Errorf("at %v %d of 1000 fail, want from %d to %d", now, failed, want[0], want[1])
		}
	}
}

// A recording with times that cannot be is refused, instead of a run over centuries.
func TestReplayOfAWrongClock(t *testing.T) {
	t.Parallel()
	for _, year := range []string{"1600", "1970", "2300", "9999"} {
		path := filepath.Join(t.TempDir(), "outcomes.jsonl")
		text := `{"at":"2026-11-30T14:08:37Z","model":"chat","status":200,"attempts":[]}` + "\n" + `{"at":"` + year + `-01-01T00:00:00Z","model":"chat","status":200,"attempts":[]}` + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadRecording(path); err == nil || !strings.Contains(err.Error(), year+"-01-01") || !strings.Contains(err.Error(), "some clock was wrong") {
			t.Errorf("%s: %v", year, err)
		}
	}
}
