// Package torture drives seeded random worlds through the engine, the router and the attempt loop, and
// checks the laws of the design after every step. It is all tests; nothing here is linked into a
// program.
//
// A world is a configuration, faults over time and a list of steps: requests, bare permits, operator's
// actions, reads, crashes with a restart from what was stored, reloads, jumps of the wall clock, a store
// that fails, nodes that lose each other. A seed stands for all of that, and steps draw from it one by
// one, so that a world still means the same when some of its steps are left out: a failing world is
// made smaller until nothing can be left out, and told in words. One world in three has a drama, a sequence
// that chance hardly ever brings about (drama_test.go).
//
// Time is virtual and everything runs in one goroutine, so that a seed always does the same.
//
// # What is checked
//
// Each law is a named function (laws_*.go) that looks at what one step has done: the gates as the store
// is told of them before and after, the reports that attempts have made, what was dispatched, who waits.
// None of them reads the engine's insides.
//
// # The budget
//
// The short run, in every test pass, is 10,000 worlds (1,000 under the race detector) in at most 40 s
// of one core. `make torture SEEDS=1000000` runs more. `make mutations` breaks one law after the other
// in the product's source, by the compiler's overlay, and wants the short run to notice. LAWS.md lists
// which law is broken by what, and by what that is noticed.
package torture
