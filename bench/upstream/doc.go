// Package upstream is what benchmarks put behind a gateway: a lean provider that costs next to
// nothing, for measuring the gateway itself, and simulated providers that fail on command and
// count what reaches them.
//
// It is a process of its own, so that its work never counts for the gateway's. A small HTTP API
// controls it; Control is its client.
package upstream
