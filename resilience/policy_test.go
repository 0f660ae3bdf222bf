package resilience

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPolicyDefaults(t *testing.T) {
	t.Parallel()
	want := Policy{
		Breaker: BreakerPolicy{FailureThreshold: 5, DegradedThreshold: 3, ResetTimeout: 30 * sec,
			EarlyProbes: []time.Duration{2 * sec, 4 * sec, 8 * sec, 10 * sec}, MaxBackoffMultiplier: 1, HalfOpenRequests: 1,
			SuccessThreshold: 1, ProbeLease: 75 * sec},
		Cooldown: CooldownPolicy{Base: sec, Max: 120 * sec, MaxLevel: 15, MaxTransient: 30 * sec, TransientAfter: 2, ForgetAfter: 5 * time.Minute,
			CooldownByKind: map[Kind]time.Duration{KindQuotaExhausted: 5 * time.Minute, KindAuth: 2 * time.Minute}},
		Lockout: LockoutPolicy{MaxAttempts: 3, AttemptWindow: time.Minute, LockoutDuration: 2 * time.Minute, MaxLockout: 30 * time.Minute,
			CooldownByKind: map[Kind]time.Duration{KindServerError: 15 * sec, KindModelOverloaded: 15 * sec, KindModelNotFound: 10 * time.Minute}},
		Recheck: RecheckPolicy{After: 15 * time.Minute, Alone: time.Minute},
		Hints:   HintPolicy{Max: 10 * time.Minute, MaxQuota: 31 * 24 * time.Hour, MaxProse: time.Hour},
	}
	got := Policy{}.Defaults()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, got.Defaults()); d != "" {
		t.Errorf("defaults of the defaults:\n%s", d)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

// A value that cannot be meant is named in the answer.
func TestPolicyValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Policy)
		say    string
	}{
		"threshold":           {func(p *Policy) { p.Breaker.FailureThreshold = -1 }, "failure threshold -1"},
		"degraded":            {func(p *Policy) { p.Breaker.DegradedThreshold = 6 }, "degraded threshold 6"},
		"reset":               {func(p *Policy) { p.Breaker.ResetTimeout = -sec }, "reset timeout -1s"},
		"a reset of years":    {func(p *Policy) { p.Breaker.ResetTimeout = 400 * 24 * time.Hour }, "reset timeout 9600h"},
		"early":               {func(p *Policy) { p.Breaker.EarlyProbes = []time.Duration{sec, 0} }, "early probe 0s"},
		"multiplier":          {func(p *Policy) { p.Breaker.MaxBackoffMultiplier = 0.5 }, "multiplier 0.5"},
		"no number":           {func(p *Policy) { p.Breaker.MaxBackoffMultiplier = math.NaN() }, "multiplier NaN"},
		"base above max":      {func(p *Policy) { p.Cooldown.Base = time.Hour }, "base 1h"},
		"jitter":              {func(p *Policy) { p.Cooldown.Jitter = 1.5 }, "jitter 1.5"},
		"lockout above max":   {func(p *Policy) { p.Lockout.LockoutDuration = time.Hour }, "lockout duration 1h"},
		"by kind":             {func(p *Policy) { p.Cooldown.CooldownByKind = map[Kind]time.Duration{KindAuth: -1} }, "cooldown for auth"},
		"a kind out of place": {func(p *Policy) { p.Breaker.CooldownByKind = map[Kind]time.Duration{KindRateLimit: sec} }, "under the cooldown instead"},
		"a kind of a model":   {func(p *Policy) { p.Breaker.CooldownByKind = map[Kind]time.Duration{KindModelNotFound: sec} }, "under the lockout instead"},
		"a kind of a request": {func(p *Policy) { p.Lockout.CooldownByKind = map[Kind]time.Duration{KindContextLength: sec} }, "remove it"},
	} {
		var p Policy
		c.change(&p)
		for _, err := range []error{p.Validate(), (Config{Policy: p}).Validate(), (Config{Providers: map[string]Provider{"x": {Policy: &p}}}).Validate()} {
			if err == nil || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%s: %v, want it to say %q", name, err, c.say)
			}
		}
		if _, err := New(Options{Config: Config{Policy: p}}); err == nil {
			t.Errorf("%s: New takes it", name)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Config: Config{Providers: map[string]Provider{"p": {Connections: []Connection{{ID: "a"}}}}}})
	for name, c := range map[string]Config{
		"a provider without a name":  {Providers: map[string]Provider{"": {}}},
		"a connection without an id": {Providers: map[string]Provider{"q": {Connections: []Connection{{}}}}},
		"an id twice":                {Providers: map[string]Provider{"q": {Connections: []Connection{{ID: "a"}, {ID: "a"}}}}},
		"a combo of nothing":         {Combos: map[string][]Key{"c": {{Provider: "p"}}}},
	} {
		if err := r.Configure(c); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if got := r.Providers(); len(got) != 1 || len(got["p"].Connections) != 1 {
		t.Errorf("a refused configuration left %v", got)
	}
}

// A new policy holds from now on; what stands keeps its deadline.
func TestConfigureSwapsThePolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m", err429.after(60*sec))
	if err := r.Configure(Config{Policy: Policy{Cooldown: CooldownPolicy{Base: 5 * sec}, Breaker: BreakerPolicy{FailureThreshold: 2}}}); err != nil {
		t.Fatal(err)
	}
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 60*sec)
	r.fail("p/b/m", err429)
	r.refusedFor("p/b/m", LayerConnection, KindRateLimit, 5*sec)
	r.fail("p/c/m", err500)
	r.fail("p/d/n", err500)
	r.wantState("p", Open, 2)
}

func TestVerdictString(t *testing.T) {
	t.Parallel()
	v := Verdict{Scope: ScopeConnection, Kind: KindRateLimit, RetryAfter: 30 * sec, Rule: "openai.rate_limit"}
	if got, want := v.String(), "connection/rate_limit after 30s (openai.rate_limit)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
