// Package route turns a configuration into plans: what a name that a client asks for stands for,
// as an ordered list of targets whose gates are resolved already.
//
// A Router is made once for each configuration and then only read; the counters that let targets
// take turns, and the latencies that the relay learns, are the only things in it that change, and
// a reload hands them on. The package dispatches nothing and judges nothing.
package route
