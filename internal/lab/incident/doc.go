// Package incident replays outages on virtual time.
//
// A [Scenario] says which providers there are, how and when they fail, and what clients ask for.
// [Run] plays it against the real engine (package resilience) and the real attempt loop with its
// waiting rooms (package failover), and returns what happened as a [Result]. Only the outside is
// made up: clients, networks and providers. What the gateway's HTTP driver does with timers, the
// runner does here with one queue of events, on one goroutine and without a clock, so that an hour
// of thousands of requests takes seconds and one seed always gives the same result.
//
// Providers are simple on purpose. An attempt's fate is drawn when it is dispatched: an answer with
// its first content and its end, a failure with its verdict, or nothing at all. A fault that begins
// later does not touch it, but for a hang, which also holds back first contents that are due.
package incident
