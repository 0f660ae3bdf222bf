// Package resilience isolates the failures of AI providers at the level where they belong, with
// three layers of one small state machine, the gate: a circuit breaker for each provider, a
// cooldown with exponential backoff for each connection (account or key), and a lockout for each
// model on a connection.
//
// An [Engine] owns the gates. A caller resolves a [Target] once, takes a [Permit] for each
// attempt, and settles it with what came of it:
//
//	t := engine.Target(resilience.Key{Provider: "openai", Connection: "main", Model: "gpt-5.2"})
//	permit, err := t.Acquire()
//	if err != nil {
//		return err // an *ExcludedError: which layer, what kind, until when
//	}
//	answer, err := call()
//	if err != nil {
//		permit.Failure(resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
//		return err
//	}
//	permit.Success()
//
// The package promises: admission while nothing is known against a target reads no clock and
// takes no lock; transitions are pure functions of values; reading a status never changes state;
// a permit that is settled twice, or never, does no harm; events are delivered in order and
// outside every lock. It never does I/O on a request's path, starts no goroutine or timer for a
// key, and imports nothing but the standard library.
package resilience
