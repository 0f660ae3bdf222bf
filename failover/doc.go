// Package failover is the attempt loop: it takes one request over the targets of a plan until
// one answers, under the gates of a resilience.Engine.
//
// [Request] is the loop as a step function: a driver tells it what happened and when, and it
// says what to do next: dispatch an attempt, wait, cancel, or give up with a [Report]. It owns
// the permits: it takes them and settles them, so that there is one accounting point whatever
// drives it. [Runner] holds what requests share, the waiting rooms; [Run] drives a Go function.
//
// The package reads no clock: time is an argument of every step.
package failover
