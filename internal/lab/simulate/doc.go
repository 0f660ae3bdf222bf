// Package simulate tries a configuration against an outage before it happens.
//
// A [File] holds a configuration of the gateway, the traffic that clients make, and how the upstreams
// behave over time. [File.Run] plays it on virtual time and returns a [Report]. The engine
// (resilience), the attempt loop with its waiting rooms and lines (failover), the router with its
// strategies (internal/route) and the classifier (classify) are the very ones that serve traffic;
// made up are clients, networks and providers. An hour of hundreds of requests a second takes
// seconds, and the same seed always gives the same report.
//
// An attempt's fate is drawn when it is dispatched: an answer with its first content and its end, a
// failure with its verdict, or nothing at all. A fault that begins later does not touch it, but for
// a hang, which also holds back first contents that are due.
package simulate
