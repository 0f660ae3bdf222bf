package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/resilience"
)

func TestPolicyMerge(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
resilience:
  breaker: {failure_threshold: 10, reset_timeout: 20s, early_probes: [1s]}
  cooldown: {jitter: 10%, cooldown_by_kind: {auth: 0s, billing: 1h}}
  recheck: {after: 0s}
providers:
  ollama: {}
  vllm:
    resilience:
      breaker: {failure_threshold: 4, early_probes: [], cooldown_by_kind: {server_error: 1m}}
      cooldown: {cooldown_by_kind: {rate_limit: 5s, auth: 3m}}
      recheck: {after: 1h}
`)
	want := resilience.Policy{}.Defaults()
	want.Breaker.FailureThreshold, want.Breaker.DegradedThreshold = 10, 6
	want.Breaker.ResetTimeout, want.Breaker.EarlyProbes = 20*time.Second, []time.Duration{time.Second}
	want.Cooldown.Jitter = 0.1
	want.Cooldown.CooldownByKind = map[resilience.Kind]time.Duration{resilience.KindQuotaExhausted: 5 * time.Minute, resilience.KindAuth: 0, resilience.KindBilling: time.Hour}
	want.Recheck.After = -1
	// Local models may take minutes to load: that is known of ollama, and not written anywhere,
	// so that the lease stays the general one.
	if diff := cmp.Diff(want, c.Provider("ollama").Policy); diff != "" {
		t.Errorf("the general policy (-want +got):\n%s", diff)
	}
	want.Breaker.FailureThreshold, want.Breaker.DegradedThreshold = 4, 3
	want.Breaker.EarlyProbes = []time.Duration{}
	want.Breaker.CooldownByKind = map[resilience.Kind]time.Duration{resilience.KindServerError: time.Minute}
	want.Cooldown.CooldownByKind = map[resilience.Kind]time.Duration{
		resilience.KindQuotaExhausted: 5 * time.Minute, resilience.KindAuth: 3 * time.Minute, resilience.KindBilling: time.Hour, resilience.KindRateLimit: 5 * time.Second,
	}
	want.Recheck.After = time.Hour
	if diff := cmp.Diff(want, c.Provider("vllm").Policy); diff != "" {
		t.Errorf("the provider's policy (-want +got):\n%s", diff)
	}
	for _, p := range c.Providers {
		if err := p.Policy.Validate(); err != nil {
			t.Errorf("%s: %v", p.ID, err)
		}
	}
}

func TestProbeLease(t *testing.T) {
	t.Parallel()
	const text = `
providers:
  ollama: {}
  vllm: {models: [{id: slow, first_token_timeout: 4m}]}
  sglang: {first_token_timeout: 90s}
  lmstudio: {resilience: {breaker: {probe_lease: 30s}}}
  llamacpp: {resilience: {breaker: {probe_lease: auto}}}
combos:
  c: {targets: [llamacpp/x], first_token_timeout: 2m}
`
	for more, want := range map[string]map[string]time.Duration{
		"":                                 {"ollama": 75 * time.Second, "vllm": 4*time.Minute + 15*time.Second, "sglang": 105 * time.Second, "lmstudio": 30 * time.Second, "llamacpp": 135 * time.Second},
		"relay: {first_token_timeout: 5s}": {"ollama": 20 * time.Second, "sglang": 105 * time.Second},
		"resilience: {breaker: {probe_lease: 44s}}": {"ollama": 44 * time.Second, "lmstudio": 30 * time.Second, "llamacpp": 135 * time.Second},
	} {
		c := mustParse(t, text+more+"\n")
		for id, lease := range want {
			if got := c.Provider(id).Policy.Breaker.ProbeLease; got != lease {
				t.Errorf("%s with %q: %v, want %v", id, more, got, lease)
			}
		}
	}
}

// TestKindsOfLayers writes out which kinds each layer hears: the text that a person gets depends on it.
func TestKindsOfLayers(t *testing.T) {
	t.Parallel()
	transient := []string{"model_overloaded", "server_error", "timeout", "network", "malformed_response", "empty_response"}
	for layer, more := range map[string][]string{
		"breaker":  {"permission"},
		"cooldown": {"rate_limit", "quota_exhausted", "billing", "auth", "permission"},
		"lockout":  {"rate_limit", "quota_exhausted", "billing", "permission", "model_not_found"},
	} {
		want := map[string]bool{}
		for _, k := range append(more, transient...) {
			want[k] = true
		}
		got := map[string]bool{}
		for _, k := range kindsOf(layer) {
			got[k] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", layer, diff)
		}
	}
}
