package failover

import (
	"strings"
	"testing"
	"time"

	"omniroute/resilience"
)

// TestX1Classes says what all causes together come to.
func TestX1Classes(t *testing.T) {
	t.Parallel()
	all := []string{"a/1/m", "b/1/m"}
	for _, c := range []struct {
		name    string
		targets []string
		play    string
		class   Class
		retry   time.Duration // 0: any
	}{
		{"all limited", all, `
			begin           -> dispatch a/1/m
			fail 429/30s    -> dispatch b/1/m
			fail quota/20s  -> give up: exhausted`, ClassLimited, 30 * time.Second},
		{"limited and out already", all, `
			other a/1/m 429/40s
			begin        -> dispatch b/1/m
			fail 429/30s -> give up: exhausted`, ClassLimited, 30 * time.Second},
		{"all out as limited", all, `
			other a/1/m 429/40s
			other b/1/m quota/50s
			begin -> give up: exhausted`, ClassLimited, 40 * time.Second},
		{"limited and an outage", all, `
			begin        -> dispatch a/1/m
			fail 429/30s -> dispatch b/1/m
			fail 500/40s -> give up: exhausted`, ClassOutage, 30 * time.Second},
		{"an account's trouble is an outage", all, `
			begin        -> dispatch a/1/m
			fail 401/30s -> dispatch b/1/m
			fail 401/30s -> give up: exhausted`, ClassOutage, 0},
		{"all timeouts", all, `
			begin            -> dispatch a/1/m
			fail timeout/30s -> dispatch b/1/m
			fail timeout/30s -> give up: exhausted`, ClassTimeout, 30 * time.Second},
		{"a timeout and an error", all, `
			begin            -> dispatch a/1/m
			fail timeout/30s -> dispatch b/1/m
			fail 500/30s     -> give up: exhausted`, ClassOutage, 0},
		{"answers of no use", all, `
			begin           -> dispatch a/1/m
			fail broken/30s -> dispatch b/1/m
			fail empty/30s  -> give up: exhausted`, ClassBad, 0},
		{"what the request itself is refused for does not count", all, `
			begin        -> dispatch a/1/m
			fail policy  -> dispatch b/1/m
			fail 429/30s -> give up: request`, ClassLimited, 30 * time.Second},
		{"what we ended ourselves does not count", all, `
			begin        -> dispatch a/1/m
			fail local   -> dispatch b/1/m
			fail 429/30s -> pause 250ms
			woken        -> dispatch a/1/m
			late         -> give up: deadline, cancel a/1/m`, ClassLimited, firstRetry},
		{"nothing known", nil, `
			begin -> give up: no connection`, ClassOutage, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, resilience.Policy{})
			s := &script{t: t, rig: r, req: NewRequest(r.plan(t, Limits{}, c.targets...), nil, true)}
			s.play(c.play)
			rep := s.req.Report(r.now)
			if rep.Class != c.class {
				t.Errorf("class %d, want %d", rep.Class, c.class)
			}
			if c.retry != 0 && rep.RetryAfter != c.retry {
				t.Errorf("retry after %v, want %v", rep.RetryAfter, c.retry)
			}
		})
	}
}

// The report tells every attempt, and every target that was passed by with its reason.
func TestReportTellsAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	s := &script{t: t, rig: r, req: NewRequest(r.plan(t, Limits{MaxAttempts: 2}, "a/1/m", "a/2/m", "b/1/m", "c/1/n", "d/1/n@5"), nil, true)}
	s.play(`
		other b/1/m 401
		begin       -> dispatch a/1/m
		+40ms
		fail length -> dispatch c/1/n
		+60ms
		fail 429/5s -> give up: request`)
	rep := s.req.Report(r.now)
	if len(rep.Attempts) != 2 || rep.Attempts[0].Duration != 40*time.Millisecond || rep.Attempts[1].Key != key("c/1/n") || rep.Attempts[1].Outcome != OutcomeFailed {
		t.Errorf("attempts: %+v", rep.Attempts)
	}
	if rep.First == nil || rep.First.Key != key("a/1/m") || rep.First.Verdict.Kind != resilience.KindContextLength {
		t.Errorf("first: %+v", rep.First)
	}
	// b offers the same model, so that it could do no better either.
	if len(rep.Skipped) != 2 || !rep.Skipped[0].Unfit || rep.Skipped[0].Key != key("a/2/m") || !rep.Skipped[1].Unfit {
		t.Errorf("skipped: %+v", rep.Skipped)
	}
	text := (&Error{Report: rep}).Error()
	for _, want := range []string{"a/1/m failed: request/context_length", "c/1/n failed: connection/rate_limit after 5s", "a/2/m could do no better", "retry after"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not tell %q", text, want)
		}
	}
}

// An upstream's own word about its return counts also where no gate keeps it.
func TestReportHeedsHints(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	req := NewRequest(r.plan(t, Limits{MaxAttempts: 1}, "a/1/m", "b/1/n"), nil, true)
	req.Step(Event{Type: Begin}, r.now)
	req.Step(Event{Type: Failed, Attempt: 1, Verdict: resilience.Verdict{Scope: resilience.ScopeLocal, RetryAfter: 7 * time.Second}}, r.now)
	p := r.Target(key("b/1/n"))
	permit, _ := p.Acquire()
	permit.Failure(verdict(t, "429/9s"))
	if rep := req.Report(r.now); rep.RetryAfter != 7*time.Second || len(rep.Skipped) != 1 || rep.Skipped[0].Kind != resilience.KindRateLimit {
		t.Errorf("%+v", rep)
	}
}

// A request that was answered tells as well what was out when it came, and so why it went where it
// went; what it has tried is told by its attempts.
func TestPassedTellsWhatWasOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	s := &script{t: t, rig: r, req: NewRequest(r.plan(t, Limits{Patience: -1}, "a/1/m", "b/1/m", "c/1/m", "d/1/m"), nil, true)}
	s.play(`
		other a/1/m 429/50s
		begin       -> dispatch b/1/m
		fail 429/5s -> dispatch c/1/m
		content     -> commit c/1/m
		end         -> finish`)
	passed := s.req.Passed(r.now)
	if len(passed) != 1 || passed[0].Key != key("a/1/m") || passed[0].Kind != resilience.KindRateLimit || passed[0].RetryAfter != 50*time.Second {
		t.Errorf("%+v", passed)
	}
}
