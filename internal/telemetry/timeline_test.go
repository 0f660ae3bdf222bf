package telemetry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/resilience"
)

// names are the states of a timeline, of the one with that layer and key.
func names(t *testing.T, lines []Timeline, layer resilience.Layer, key resilience.Key) (out []string) {
	t.Helper()
	for _, l := range lines {
		if l.Layer == layer && l.Key == key {
			for _, s := range l.States {
				out = append(out, s.State)
			}
		}
	}
	return out
}

// TestTimelinesFollowTheEngine: what an outage, a rate limit and an operator do is told, and a
// gateway that starts again begins with what is out.
func TestTimelinesFollowTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := resilience.New(resilience.Options{Config: world()})
		if err != nil {
			t.Fatal(err)
		}
		lines := NewTimelines()
		defer e.Subscribe(lines.Heard)()
		acme, k1 := resilience.Key{Provider: "acme"}, resilience.Key{Provider: "acme", Connection: "k1"}
		only := resilience.Key{Provider: "beta", Connection: "only"}
		for i := range 5 {
			key := large
			key.Connection = []string{"k1", "k2"}[i%2]
			key.Model = []string{"large", "small"}[i%2]
			e.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
		}
		e.RecordFailure(resilience.Key{Provider: "beta", Connection: "only", Model: "large"}, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Minute})
		if err := e.Exclude(k1, time.Minute, "maintenance"); err != nil {
			t.Fatal(err)
		}
		anew := NewTimelines()
		anew.Begin(e.Status())
		again := anew.List(time.Now())
		time.Sleep(time.Second)
		e.Reset(resilience.Key{}, true)
		got := lines.List(time.Now())
		if diff := cmp.Diff([]string{"DEGRADED", "OPEN", "CLOSED"}, names(t, got, resilience.LayerBreaker, acme)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"cooling", "ready"}, names(t, got, resilience.LayerConnection, only)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"excluded", "ready"}, names(t, got, resilience.LayerOperator, k1)); diff != "" {
			t.Error(diff)
		}
		for layer, key := range map[resilience.Layer]resilience.Key{resilience.LayerBreaker: acme, resilience.LayerConnection: only, resilience.LayerOperator: k1} {
			if n := names(t, again, layer, key); len(n) != 1 {
				t.Errorf("begun anew, %v of %v is %v", layer, key, n)
			}
		}
		for _, l := range again {
			if l.Layer == resilience.LayerConnection && l.Key == only && (l.States[0].Kind != "rate_limit" || l.States[0].Until.Sub(l.States[0].At) != time.Minute) {
				t.Errorf("%+v", l.States[0])
			}
		}
		if left := lines.List(time.Now().Add(2 * SeriesSpan)); len(left) != 0 {
			t.Errorf("two hours later there are %v", left)
		}
	})
}

func TestTimelinesAreBounded(t *testing.T) {
	t.Parallel()
	lines := NewTimelines()
	ev := resilience.Event{Layer: resilience.LayerBreaker, Key: resilience.Key{Provider: "acme"}}
	for i := range 3 * maxStates {
		ev.At.Time = begin.Add(time.Duration(i) * time.Second)
		ev.Type = []resilience.EventType{resilience.EventOpened, resilience.EventClosed}[i%2]
		lines.Heard(ev)
	}
	got := lines.List(ev.At.Time)[0].States
	if len(got) != maxStates || !got[len(got)-1].At.Equal(ev.At.Time) {
		t.Errorf("%d states, the last at %v", len(got), got[len(got)-1].At)
	}
	// One state of long ago stays, since it lasts into the hour.
	ev.At.Time = ev.At.Add(5 * SeriesSpan)
	lines.Heard(ev)
	if got := lines.List(ev.At.Time)[0].States; len(got) != 2 {
		t.Errorf("%d states, want the last before the hour and the new one", len(got))
	}
	ev.Type, ev.Until.Time = resilience.EventExtended, ev.At.Add(time.Minute)
	lines.Heard(ev)
	if got := lines.List(ev.At.Time)[0].States; len(got) != 2 || !got[1].Until.Equal(ev.Until.Time) {
		t.Errorf("an extended exclusion: %+v", got)
	}
}
