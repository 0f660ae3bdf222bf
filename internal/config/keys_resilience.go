package config

import "omniroute/resilience"

var resilienceFields = []field{
	{key: "breaker", spec: spec{kind: kindObject, fields: breakerFields}, doc: "Layer 1, the circuit breaker: takes a whole provider out."},
	{key: "cooldown", spec: spec{kind: kindObject, fields: cooldownFields}, doc: "Layer 2, the connection cooldown: takes one account or key out."},
	{key: "lockout", spec: spec{kind: kindObject, fields: lockoutFields}, doc: "Layer 3, the model lockout: takes one model on one connection out."},
	{key: "recheck", spec: spec{kind: kindObject, fields: recheckFields}, doc: "How far long exclusions are trusted."},
	{key: "hints", spec: spec{kind: kindObject, fields: hintFields}, doc: "How far the waits that upstreams state are trusted."},
}

var breakerFields = []field{
	{key: "failure_threshold", spec: spec{kind: kindInt, min: 1, max: 1e6}, def: "5", doc: "How many failures of the provider in a row open the breaker."},
	{key: "degraded_threshold", spec: spec{kind: kindInt, min: 1, max: 1e6, enum: []string{"auto"}}, def: "auto", doc: "From how many the state is DEGRADED. auto: 60% of failure_threshold, rounded up."},
	{key: "reset_timeout", spec: spec{kind: kindDuration, min: positive}, def: "30s", doc: "How long the breaker stays OPEN."},
	{key: "early_probes", spec: spec{kind: kindList, elem: &spec{kind: kindDuration, min: positive}}, def: "[2s, 4s, 8s, 10s]", doc: "The pauses before single probes pass while it is OPEN, the last one repeated. []: none."},
	{key: "max_backoff_multiplier", spec: spec{kind: kindNumber, min: 1, max: 1000}, def: "1", doc: "By how much reset_timeout may grow, doubling from the fourth failed round on. 1: not at all."},
	{key: "half_open_requests", spec: spec{kind: kindInt, min: 1, max: 1e6}, def: "1", doc: "How many probes run at once in HALF_OPEN."},
	{key: "success_threshold", spec: spec{kind: kindInt, min: 1, max: 1e6}, def: "1", doc: "How many successful probes close the breaker."},
	{key: "probe_lease", spec: spec{kind: kindDuration, min: positive, enum: []string{"auto"}}, def: "auto", doc: "How long a probe may hold its place, in every layer. auto: first_token_timeout and 15s."},
	byKindField("breaker", "{}", "How long the breaker stays OPEN at least after a last failure of a kind."),
}

var cooldownFields = []field{
	{key: "base", spec: spec{kind: kindDuration, min: positive}, def: "1s", doc: "The first cooldown; each further failure doubles it."},
	{key: "max", spec: spec{kind: kindDuration, min: positive}, def: "120s", doc: "The longest cooldown by doubling."},
	{key: "max_transient", spec: spec{kind: kindDuration, min: positive}, def: "30s", doc: "The same for failures that pass by themselves."},
	{key: "max_level", spec: spec{kind: kindInt, min: 1, max: 15}, def: "15", doc: "How often the cooldown doubles at most."},
	{key: "transient_after", spec: spec{kind: kindInt, min: 1, max: 1e6}, def: "2", doc: "Which failure in a row of one model that passes by itself cools the connection. 1: the first."},
	{key: "forget_after", spec: spec{kind: kindDuration, min: positive}, def: "5m", doc: "How long after its end a cooldown's level is remembered."},
	{key: "jitter", spec: spec{kind: kindShare, max: 1}, def: "0", doc: "By which share a cooldown may be longer, at random."},
	byKindField("cooldown", "{quota_exhausted: 5m, auth: 2m}", "The first cooldown of a kind, in place of base, and of max where it is longer."),
}

var lockoutFields = []field{
	{key: "max_attempts", spec: spec{kind: kindInt, min: 1, max: 1e6}, def: "3", doc: "How many failures of the model in a row lock it."},
	{key: "attempt_window", spec: spec{kind: kindDuration, min: positive}, def: "60s", doc: "Within which time they must come."},
	{key: "lockout_duration", spec: spec{kind: kindDuration, min: positive}, def: "2m", doc: "The first lockout; each relock doubles it."},
	{key: "max_lockout", spec: spec{kind: kindDuration, min: positive}, def: "30m", doc: "The longest lockout by doubling."},
	byKindField("lockout", "{server_error: 15s, model_overloaded: 15s, model_not_found: 10m}", "The lockout of a kind, in place of lockout_duration, and of max_lockout where it is longer. Kinds that pass by themselves do not double."),
}

var recheckFields = []field{
	{key: "after", spec: spec{kind: kindDuration}, def: "15m", doc: "How often an exclusion that is longer lets one live request through. 0s: never."},
	{key: "alone", spec: spec{kind: kindDuration, min: positive}, def: "60s", doc: "The same for a request that has no other target."},
}

var hintFields = []field{
	{key: "max", spec: spec{kind: kindDuration, min: positive}, def: "10m", doc: "The longest stated wait that is believed of rate limits and of failures that pass by themselves."},
	{key: "max_quota", spec: spec{kind: kindDuration, min: positive}, def: "744h", doc: "The same of quotas and other lasting causes."},
	{key: "max_prose", spec: spec{kind: kindDuration, min: positive}, def: "1h", doc: "The same where it was read from human language."},
}

func byKindField(layer, def, doc string) field {
	return field{
		key: "cooldown_by_kind", def: def, doc: doc + " Merged by kind; 0s takes an entry away.",
		spec: spec{kind: kindMap, elem: &spec{kind: kindDuration}, enum: kindsOf(layer)},
	}
}

func kindNames() []string {
	var names []string
	for _, k := range resilience.Kinds() {
		if k != resilience.KindUnknown && k != resilience.KindCanceled { // no answer means either
			names = append(names, k.String())
		}
	}
	return names
}

// hears reports whether a failure of the kind can ever trip the layer.
func hears(layer string, k resilience.Kind) bool {
	if k.Transient() {
		return true
	}
	switch k {
	case resilience.KindPermission:
		return true // of a region, an account, a model
	case resilience.KindRateLimit, resilience.KindQuotaExhausted, resilience.KindBilling:
		return layer != "breaker"
	case resilience.KindAuth:
		return layer == "cooldown"
	case resilience.KindModelNotFound:
		return layer == "lockout"
	}
	return false
}

func kindsOf(layer string) []string {
	var names []string
	for _, k := range resilience.Kinds() {
		if hears(layer, k) {
			names = append(names, k.String())
		}
	}
	return names
}

// instead returns the layer that a kind is for, "" when it excludes nothing.
func instead(k resilience.Kind) string {
	for _, layer := range []string{"cooldown", "lockout", "breaker"} {
		if hears(layer, k) {
			return layer
		}
	}
	return ""
}

// defaultPolicy is where every policy starts: only the maps are filled in, so that what a file does not set
// follows from what it sets (degraded_threshold from failure_threshold).
func defaultPolicy() resilience.Policy {
	d := resilience.Policy{}.Defaults()
	return resilience.Policy{
		Cooldown: resilience.CooldownPolicy{CooldownByKind: d.Cooldown.CooldownByKind},
		Lockout:  resilience.LockoutPolicy{CooldownByKind: d.Lockout.CooldownByKind},
	}
}
