package dashboard

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniroute/failover"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// apply is what the page does with a change.
func apply(docs view, c change) view {
	if c.Full {
		docs = view{}
	}
	out := maps.Clone(docs)
	maps.Copy(out, c.Set)
	for _, key := range c.Del {
		delete(out, key)
	}
	return out
}

// TestChangesRebuildTheView: whatever two views are like, the change between them makes the page's
// documents those of the second, and nothing is sent that was there.
func TestChangesRebuildTheView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		docs := rapid.MapOf(rapid.StringMatching("[a-e]"), rapid.Map(rapid.IntRange(0, 3), func(n int) json.RawMessage { return fmt.Appendf(nil, "%d", n) }))
		seen := view(nil)
		page := view{"stale": json.RawMessage("1")}
		for range 5 {
			v := view(docs.Draw(t, "view"))
			c := changeOf(seen, v)
			for key, doc := range c.Set {
				if !c.Full && string(seen[key]) == string(doc) {
					t.Errorf("%s is sent again", key)
				}
			}
			page, seen = apply(page, c), v
			if diff := cmp.Diff(map[string]json.RawMessage(v), map[string]json.RawMessage(page)); diff != "" {
				t.Fatal(diff)
			}
			if again := changeOf(seen, v); !again.empty() {
				t.Error("an unchanged view is a change")
			}
		}
	})
}

// TestViewIsStill: while nothing happens a deadline runs down and nothing is sent.
func TestViewIsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, world)
		key := resilience.Key{Provider: "acme", Connection: "main", Model: "large"}
		b.engine.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Minute})
		for i := range 5 {
			other := key
			other.Model = []string{"large", "small"}[i%2]
			b.engine.RecordFailure(other, resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
		}
		first, _ := b.feed.latest(time.Now())
		if again, _ := b.feed.latest(time.Now()); fmt.Sprintf("%p", again) != fmt.Sprintf("%p", first) {
			t.Error("two readers at once make two views")
		}
		time.Sleep(700 * time.Millisecond)
		second, _ := b.feed.latest(time.Now())
		if c := changeOf(first, second); len(c.Set) > 0 || len(c.Del) > 0 {
			t.Errorf("%s", slices.Collect(maps.Keys(c.Set)))
		}
		var c connectionDoc
		if err := json.Unmarshal(second["c:acme/main"], &c); err != nil || time.Until(c.Until.Time).Round(time.Second) != 59*time.Second {
			t.Errorf("%v: %s", err, second["c:acme/main"])
		}
		var p providerDoc
		if err := json.Unmarshal(second["p:acme"], &p); err != nil || p.Breaker.State != resilience.Open || p.Breaker.NextAt.IsZero() || p.Available {
			t.Errorf("%v: %s", err, second["p:acme"])
		}
		time.Sleep(2 * time.Minute)
		third, _ := b.feed.latest(time.Now())
		if c := changeOf(second, third); c.Set["c:acme/main"] == nil {
			t.Error("that the cooldown is over is not told")
		}
	})
}

// TestFailuresDoNotDrown: in heavy traffic the odd requests stay in the list.
func TestFailuresDoNotDrown(t *testing.T) {
	t.Parallel()
	v := view{}
	requests(v, func(f func(telemetry.Story) bool) {
		for i := range 1000 {
			s := telemetry.Story{ID: fmt.Sprint(i), At: noon.Add(-time.Duration(i) * time.Second), Status: 200, Attempts: make([]failover.Record, 1)}
			if i%100 == 99 {
				s.Status = 503
			}
			if !f(s) {
				return
			}
		}
	})
	odd := 0
	for _, doc := range v {
		if strings.Contains(string(doc), `"status":503`) {
			odd++
		}
	}
	if len(v) != shownLatest+10 || odd != 10 {
		t.Errorf("%d requests, %d of them odd", len(v), odd)
	}
}

// BenchmarkView makes a view of 200 connections, all out, and 1,000 requests, and what changed in it.
func BenchmarkView(b *testing.B) {
	var text strings.Builder
	text.WriteString("store: \"memory:\"\nproviders:\n")
	for i := range 20 {
		fmt.Fprintf(&text, "  p%d:\n    dialect: openai\n    base_url: https://p%d.example/v1\n    connections:\n", i, i)
		for j := range 10 {
			fmt.Fprintf(&text, "      - {id: c%d, api_key: k%d-%d}\n", j, i, j)
		}
	}
	bench := newBench(b, text.String())
	for i := range 20 {
		for j := range 10 {
			bench.engine.RecordFailure(resilience.Key{Provider: fmt.Sprint("p", i), Connection: fmt.Sprint("c", j), Model: "m"},
				resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Hour})
		}
	}
	for i := range 1000 {
		bench.o.Admin.Observe(telemetry.Story{ID: fmt.Sprint(i), At: time.Now(), Status: 200, Attempts: make([]failover.Record, 2)})
	}
	now := time.Now()
	last, _ := bench.feed.latest(now)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(bench.o.Pace)
		v, _ := bench.feed.latest(now)
		changeOf(last, v)
		last = v
	}
}

// events reads server-sent events: the name and the data of each.
func events(body string) (out [][2]string) {
	for block := range strings.SplitSeq(body, "\n\n") {
		var e [2]string
		sc := bufio.NewScanner(strings.NewReader(block))
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			if name, ok := strings.CutPrefix(sc.Text(), "event: "); ok {
				e[0] = name
			}
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
				e[1] = data
			}
		}
		if e[0] != "" {
			out = append(out, e)
		}
	}
	return out
}

// TestStream: all there is, then what changes, at most twice a second, and a farewell.
func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, world)
		cookie, _ := b.signIn()
		var w *httptest.ResponseRecorder
		done := make(chan struct{})
		go func() { defer close(done); w = b.ask("GET", "/dashboard/stream", "", cookie) }()
		time.Sleep(6*time.Second + 50*time.Millisecond) // not at the moment of a heartbeat
		for range 40 {                                  // ten a second
			b.engine.Reset(resilience.Key{}, false)
			if err := b.engine.Exclude(resilience.Key{Provider: "acme"}, time.Hour, fmt.Sprint(time.Now().UnixNano())); err != nil {
				t.Error(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		b.Close()
		<-done
		got := events(w.Body.String())
		count := map[string]int{}
		for _, e := range got {
			count[e[0]]++
		}
		if got[0][0] != "hello" || !strings.Contains(got[0][1], version) || got[1][0] != "view" || !strings.Contains(got[1][1], `"full":true`) {
			t.Errorf("it begins with %v", got[:2])
		}
		if last := got[len(got)-1]; last[0] != "bye" || !strings.Contains(last[1], "shutdown") {
			t.Errorf("it ends with %v", last)
		}
		if n := count["view"]; n < 8 || n > 10 {
			t.Errorf("%d views for a beginning and 4 s of changes, want two a second", n)
		}
		if count["alive"] != 2 {
			t.Errorf("%d heartbeats in 10 s", count["alive"])
		}
		for _, secret := range []string{token, "upstream-key"} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("the stream holds %s", secret)
			}
		}
	})
}

// TestStreamEndsWithTheSession: a page that is open when the token changes, or the twelve hours are
// over, gets nothing more.
func TestStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*bench){
		"time":  func(*bench) { time.Sleep(sessionTime) },
		"token": func(b *bench) { b.cfg.Store(parse(t, strings.ReplaceAll(world, token, "another"))) },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, world)
			b.o.Pace, b.o.Heartbeat = time.Hour, time.Hour
			cookie, _ := b.signIn()
			var w *httptest.ResponseRecorder
			done := make(chan struct{})
			go func() { defer close(done); w = b.ask("GET", "/dashboard/stream", "", cookie) }()
			time.Sleep(time.Second)
			end(b)
			<-done
			if got := events(w.Body.String()); got[len(got)-1] != [2]string{"bye", `{"why":"signed_out"}`} {
				t.Errorf("%s: it ends with %v", name, got[len(got)-1])
			}
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, world)
		cookie, _ := b.signIn()
		for range maxReaders {
			go b.ask("GET", "/dashboard/stream", "", cookie)
		}
		synctest.Wait()
		if w := b.ask("GET", "/dashboard/stream", "", cookie); w.Code != http.StatusServiceUnavailable {
			t.Errorf("one too many: %d", w.Code)
		}
		b.Close()
		synctest.Wait()
		if b.readers.n != 0 {
			t.Errorf("%d are left", b.readers.n)
		}
	})
}
