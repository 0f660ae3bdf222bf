// Package failover is the attempt loop: it takes one request over the targets of a plan until
// one answers, under the gates of a resilience.Engine.
//
// [Run] does so for a function of a Go program. Below it are the parts for other drivers:
//
//   - [Request] is the loop as a step function: a driver tells it what happened and when, and it
//     says what to do next: dispatch an attempt, wait, cancel, or give up with a [Report]. It owns
//     the permits: it takes them and settles them, so that there is one accounting point whatever
//     drives it.
//   - [Lobby] is what requests have to know of each other: the waiting rooms, and who waits for a
//     provider that hangs.
//   - [Places] and [PlaceSet] are how many attempts may run on a connection at once, and who waits
//     for that.
//   - [Runner] and [Handle] carry both in real time, with locks and timers.
//
// Request and Lobby read no clock and start nothing: time is an argument of every step, so that a
// simulator and a gateway run the same code.
package failover
