package failover

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniroute/resilience"
)

// epoch is when every test's virtual clock starts.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig is an engine on a virtual clock. A probe's lease lasts for a year, so that a permit that was
// never settled shows.
type rig struct {
	*resilience.Engine
	now  time.Time
	held map[string]resilience.Permit
}

func newRig(t rapid.TB, p resilience.Policy) *rig {
	t.Helper()
	r := &rig{now: epoch, held: map[string]resilience.Permit{}}
	p.Breaker.ProbeLease = 365 * 24 * time.Hour
	e, err := resilience.New(resilience.Options{Config: resilience.Config{Policy: p}, Now: func() time.Time { return r.now }})
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = e
	return r
}

func key(s string) resilience.Key {
	f := strings.Split(s, "/")
	return resilience.Key{Provider: f[0], Connection: f[1], Model: f[2]}
}

// plan reads targets "provider/connection/model", with "@window" where it is known. The next
// entry begins where provider or model change.
func (r *rig) plan(t rapid.TB, l Limits, targets ...string) *Plan {
	t.Helper()
	p := Plan{Name: "test", Limits: l, Ordered: true}
	for i, s := range targets {
		name, window, _ := strings.Cut(s, "@")
		k := key(name)
		n, _ := strconv.ParseInt(window, 10, 64)
		x := Target{Target: r.Target(k), Window: n}
		if i > 0 {
			last := p.Targets[i-1]
			x.Entry = last.Entry
			if k.Provider != last.Key().Provider || k.Model != last.Key().Model {
				x.Entry++
			}
		}
		p.Targets = append(p.Targets, x)
	}
	made, err := NewPlan(p)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// verdicts by the names that scripts use. "/2s" behind one adds a hint.
var verdicts = map[string]resilience.Verdict{
	"500":     {Scope: resilience.ScopeProvider, Kind: resilience.KindServerError},
	"timeout": {Scope: resilience.ScopeProvider, Kind: resilience.KindTimeout},
	"broken":  {Scope: resilience.ScopeProvider, Kind: resilience.KindMalformedResponse},
	"empty":   {Scope: resilience.ScopeProvider, Kind: resilience.KindEmptyResponse},
	"dial":    {Scope: resilience.ScopeProvider, Kind: resilience.KindNetwork, Dial: true},
	"429":     {Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit},
	"quota":   {Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted},
	"401":     {Scope: resilience.ScopeConnection, Kind: resilience.KindAuth},
	"404":     {Scope: resilience.ScopeModel, Kind: resilience.KindModelNotFound, Certain: true},
	"length":  {Scope: resilience.ScopeRequest, Kind: resilience.KindContextLength},
	"absent":  {Scope: resilience.ScopeRequest, Kind: resilience.KindInvalidRequest, RetrySame: true},
	"policy":  {Scope: resilience.ScopeRequest, Kind: resilience.KindContentPolicy},
	"400":     {Scope: resilience.ScopeClient, Kind: resilience.KindInvalidRequest},
	"local":   {Scope: resilience.ScopeLocal, Kind: resilience.KindTimeout},
	"cut":     {Scope: resilience.ScopeProvider, Kind: resilience.KindNetwork},
	"ok":      {},
}

func verdict(t testing.TB, s string) resilience.Verdict {
	t.Helper()
	name, hint, _ := strings.Cut(s, "/")
	v, ok := verdicts[name]
	if !ok {
		t.Fatalf("no verdict %q", s)
	}
	if hint != "" {
		v.RetryAfter = duration(t, hint)
	}
	return v
}

func duration(t testing.TB, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var causes = [...]string{"none", "exhausted", "no connection", "request", "deadline", "queue full", "local"}

// describe puts an action into a script's words.
func describe(a Action, r *Request, now time.Time) string {
	s := ""
	switch a.Type {
	case Continue:
		s = "continue"
	case Dispatch:
		s = "dispatch " + a.Attempt.Target.Key().String()
		if a.Attempt.Probe {
			s += " as a probe"
		}
		if a.Attempt.Hedge {
			s += " as a hedge"
		}
	case Pause:
		s = fmt.Sprint("pause ", a.Until.Sub(now))
	case Enter:
		s = fmt.Sprint("room for ", a.Budget)
	case Commit:
		s = "commit " + a.Attempt.Target.Key().String()
	case GiveUp:
		s = "give up: " + causes[r.cause]
	case Finish:
		s = "finish"
	}
	for _, c := range a.Cancel {
		s += ", cancel " + c.Target.Key().String()
	}
	return s
}

// script plays a request line by line. A line is an event and, behind "->", what the request must
// answer. The events:
//
//	begin, content, end [verdict], break VERDICT (the answer may be finished by another attempt),
//	fail VERDICT [again], suspect, slow, woken [time that counts], full, abandon, late
//
// "#2" behind one names the attempt, which is else the last one. What else happens:
//
//	+2s              time passes
//	other T VERDICT  another request is answered so by target T
//	hold T, free T   another request probes T, and ends without a verdict
//	desperate T      another request asks T as a last resort
//	revoke T         the key of T's connection is revoked
//	slow T           another request waits suspiciously long for T
type script struct {
	t    testing.TB
	rig  *rig
	req  *Request
	last Action
}

func (s *script) play(lines string) {
	s.t.Helper()
	for n, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		do, want, step := strings.Cut(line, "->")
		f := strings.Fields(do)
		if len(f) == 0 {
			continue
		}
		if !step {
			s.around(f)
			continue
		}
		if got := s.step(f); got != strings.TrimSpace(want) {
			s.t.Fatalf("line %d, %q: got %q", n+1, strings.TrimSpace(line), got)
		}
	}
}

func (s *script) around(f []string) {
	s.t.Helper()
	r := s.rig
	switch f[0] {
	case "other":
		p, err := r.Target(key(f[1])).Acquire()
		if err != nil {
			s.t.Fatal(err)
		}
		p.Failure(verdict(s.t, f[2]))
	case "hold":
		p, err := r.Target(key(f[1])).Acquire()
		if err != nil || !p.Probe() {
			s.t.Fatalf("no probe of %s: %v", f[1], err)
		}
		r.held[f[1]] = p
	case "revoke":
		r.RecordFailure(key(f[1]), resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindAuth, Quarantine: true})
	case "desperate":
		p, err := r.Target(key(f[1])).AcquireLastResort()
		if err != nil {
			s.t.Fatal(err)
		}
		r.held[f[1]] = p
	case "free":
		r.held[f[1]].Neutral()
	case "slow":
		p, err := r.Target(key(f[1])).Acquire()
		if err != nil {
			s.t.Fatal(err)
		}
		p.Waited()
	default:
		r.now = r.now.Add(duration(s.t, strings.TrimPrefix(f[0], "+")))
	}
}

func (s *script) step(f []string) string {
	s.t.Helper()
	name, id, _ := strings.Cut(f[0], "#")
	ev := Event{Attempt: s.req.Dispatched()}
	if id != "" {
		ev.Attempt, _ = strconv.Atoi(id)
	}
	switch name {
	case "begin":
		ev.Type = Begin
	case "content":
		ev.Type = Content
	case "end":
		ev.Type = Ended
		if len(f) > 1 {
			ev.Verdict = verdict(s.t, f[1])
		}
	case "break":
		ev.Type, ev.Verdict, ev.Resume = Ended, verdict(s.t, f[1]), true
	case "fail":
		ev.Type, ev.Verdict, ev.Again = Failed, verdict(s.t, f[1]), len(f) > 2
	case "suspect":
		ev.Type = Suspect
	case "slow":
		ev.Type = Slow
	case "woken":
		ev.Type = Woken
		switch {
		case len(f) > 1:
			ev.Waited = duration(s.t, f[1])
			s.rig.now = s.rig.now.Add(ev.Waited)
		case s.last.Type == Pause:
			s.rig.now = s.last.Until
		}
	case "full":
		ev.Type = RoomFull
	case "abandon":
		ev.Type = Abandoned
	case "late":
		ev.Type = TimedOut
	default:
		s.t.Fatalf("no event %q", f[0])
	}
	s.last = s.req.Step(ev, s.rig.now)
	return describe(s.last, s.req, s.rig.now)
}

// settled fails when a probe's slot is still held long after everything has recovered.
func (r *rig) settled(t testing.TB, p *Plan) {
	t.Helper()
	r.now = r.now.Add(time.Hour)
	for i := range p.Targets {
		permit, err := p.Targets[i].Acquire()
		if err != nil {
			t.Errorf("a permit was never settled: %v", err)
			continue
		}
		permit.Neutral()
	}
}
