package resilience

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The status is what the admin API answers: its JSON is fixed.
func TestStatusJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Config: Config{Providers: map[string]Provider{
		"acme": {Connections: []Connection{{ID: "k2"}, {ID: "k1"}}}, "openai": {Connections: []Connection{{ID: "main"}}},
	}}})
	quota := account(KindQuotaExhausted).after(90 * sec)
	quota.Rule = "openai.quota"
	locked := r.take("openai/main/gpt-5.2")
	r.fail("openai/main/gpt-5.2", quota)
	locked.Failure(model(KindRateLimit))
	r.RecordFailure(target("acme/k1/large"), err500)
	r.at(250 * ms)
	got, err := json.MarshalIndent(r.Status(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "now": "2026-01-02T03:04:05.250Z",
 "persistence": "off",
 "local_outage": false,
 "providers": [
  {
   "id": "acme",
   "available": true,
   "available_at": null,
   "breaker": {
    "state": "CLOSED",
    "failures": 1,
    "failure_threshold": 5,
    "open_cycles": 0,
    "retry_after_ms": 0,
    "last_failure_kind": "server_error",
    "last_failure_at": "2026-01-02T03:04:05.000Z",
    "opened_at": null,
    "reset_at": null
   },
   "connections": [
    {
     "id": "k2",
     "state": "ready",
     "kind": null,
     "rate_limited_until": null,
     "retry_after_ms": 0,
     "backoff_level": 0,
     "cooldown_ms": 0,
     "last_error": null
    },
    {
     "id": "k1",
     "state": "ready",
     "kind": null,
     "rate_limited_until": null,
     "retry_after_ms": 0,
     "backoff_level": 0,
     "cooldown_ms": 0,
     "last_error": {
      "kind": "server_error",
      "at": "2026-01-02T03:04:05.000Z"
     }
    }
   ]
  },
  {
   "id": "openai",
   "available": false,
   "available_at": "2026-01-02T03:09:05.000Z",
   "breaker": {
    "state": "CLOSED",
    "failures": 0,
    "failure_threshold": 5,
    "open_cycles": 0,
    "retry_after_ms": 0,
    "last_failure_kind": null,
    "last_failure_at": null,
    "opened_at": null,
    "reset_at": null
   },
   "connections": [
    {
     "id": "main",
     "state": "cooling",
     "kind": "quota_exhausted",
     "rate_limited_until": "2026-01-02T03:09:05.000Z",
     "retry_after_ms": 299750,
     "backoff_level": 1,
     "cooldown_ms": 300000,
     "last_error": {
      "kind": "rate_limit",
      "at": "2026-01-02T03:04:05.000Z"
     }
    }
   ]
  }
 ],
 "combos": [],
 "lockouts": [
  {
   "provider": "openai",
   "connection": "main",
   "model": "gpt-5.2",
   "kind": "rate_limit",
   "failures": 1,
   "locked": false,
   "locked_until": "2026-01-02T03:04:06.000Z",
   "retry_after_ms": 750
  }
 ],
 "operator": []
}`
	// The quota's own base of 5m is longer than the stated 90s.
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	var back Status
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	again, _ := json.MarshalIndent(back, "", " ")
	if d := cmp.Diff(string(got), string(again)); d != "" {
		t.Fatalf("read and written again:\n%s", d)
	}
}

func TestStatusOfAConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m", err429)
	r.at(sec)
	if c := r.conn("p", "a"); c.State != Ready || c.BackoffLevel != 1 || c.Kind != nil || c.CooldownMs != 0 {
		t.Fatalf("due: %+v", c)
	}
	p := r.take("p/a/m")
	if c := r.conn("p", "a"); c.State != Probing {
		t.Fatalf("probing: %+v", c)
	}
	p.Failure(err429)
	if c := r.conn("p", "a"); c.State != Cooling || c.BackoffLevel != 2 || *c.Kind != KindRateLimit || c.CooldownMs != 2000 || c.RetryAfterMs != 2000 {
		t.Fatalf("cooling: %+v", c)
	}
	r.at(20 * time.Minute)
	if c := r.conn("p", "a"); c.State != Ready || c.BackoffLevel != 0 {
		t.Fatalf("forgotten: %+v", c)
	}
	r.fail("p/a/m", revoked)
	if c := r.conn("p", "a"); c.State != Quarantined {
		t.Fatalf("quarantined: %+v", c)
	}
	_ = r.Exclude(target("p/a"), 0, "")
	if c := r.conn("p", "a"); c.State != Excluded {
		t.Fatalf("excluded: %+v", c)
	}
}

func TestNamesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		b, _ := json.Marshal(k)
		var back Kind
		if err := json.Unmarshal(b, &back); err != nil || back != k {
			t.Errorf("%s: %v, %v", b, back, err)
		}
	}
	for s := ScopeNone; s <= ScopeLocal; s++ {
		b, _ := json.Marshal(s)
		var back Scope
		if err := json.Unmarshal(b, &back); err != nil || back != s {
			t.Errorf("%s: %v, %v", b, back, err)
		}
	}
	for l := LayerNone; l <= LayerOperator; l++ {
		b, _ := json.Marshal(l)
		var back Layer
		if err := json.Unmarshal(b, &back); err != nil || back != l {
			t.Errorf("%s: %v, %v", b, back, err)
		}
	}
	for _, f := range []func() error{
		func() error { _, err := ParseKind("nope"); return err },
		func() error { _, err := ParseScope("nope"); return err },
		func() error { return new(Layer).UnmarshalText([]byte("nope")) },
	} {
		if f() == nil {
			t.Error("an unknown name is accepted")
		}
	}
	if Kind(200).String() != "invalid" {
		t.Error("an invalid kind has a name")
	}
	for k, want := range map[string]string{"p": "p", "p/a": "p/a", "p/a/m": "p/a/m", "p//m": "p/*/m", "p/a/org/m": "p/a/org/m"} {
		if got := target(k).String(); got != want {
			t.Errorf("%q is written %q, want %q", k, got, want)
		}
	}
}

// The overview is the status but for the lockouts, of which there may be very many.
func TestOverview(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	gone := model(KindModelNotFound)
	gone.Certain = true
	r.fail("acme/k1/large", gone)
	r.fail("acme/k1/small", account(KindRateLimit).after(90*sec))
	want := r.Status()
	if len(want.Lockouts) != 1 {
		t.Fatalf("%+v", want.Lockouts)
	}
	want.Lockouts = []LockoutStatus{}
	if diff := cmp.Diff(want, r.Overview()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCombosWithoutTarget: a combo is there as long as one of its targets may be used, and says when one may again.
func TestCombosWithoutTarget(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Config: Config{
		Providers: map[string]Provider{"acme": {Connections: []Connection{{ID: "k1"}, {ID: "k2"}}}, "empty": {}},
		Combos: map[string][]Key{
			"one": {target("acme/k1/large")}, "both": {target("acme/k1/large"), target("acme/k2/large")}, "other": {target("acme/k1/small")}, "none": nil,
		},
	}})
	want := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range r.Status().Combos {
			kind := "-"
			if c.Kind != nil {
				kind = c.Kind.String()
			}
			left := "-"
			if !c.AvailableAt.IsZero() {
				left = c.AvailableAt.Sub(r.Status().Now.Time).String()
			}
			got = append(got, fmt.Sprint(c.ID, " ", c.Available, " ", kind, " ", left))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	want("at first", "both true - -", "none false - -", "one true - -", "other true - -")
	r.RecordFailure(target("acme/k1/large"), account(KindRateLimit).after(90*sec))
	want("with one connection cooling", "both true - -", "none false - -", "one false rate_limit 1m30s", "other false rate_limit 1m30s")
	if err := r.Exclude(target("acme/k2/large"), 30*sec, "maintenance"); err != nil {
		t.Fatal(err)
	}
	want("with the other model excluded", "both false rate_limit 30s", "none false - -", "one false rate_limit 1m30s", "other false rate_limit 1m30s")
	r.at(91 * sec)
	want("when the times are over", "both true - -", "none false - -", "one true - -", "other true - -")
}
