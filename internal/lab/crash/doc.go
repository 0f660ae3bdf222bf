// Package crash holds the crash test for gateways: sixteen ways in which an upstream fails a
// request that a user is waiting for, and what a gateway should make of each.
//
// The test prints a table of verdicts: for the defaults and for a configuration that uses the
// options made for it, for streamed answers and for whole ones. Everything runs with full timings on
// virtual time; some of it again on sockets. A scenario that fails, or that does worse than it
// used to, fails the test.
package crash
