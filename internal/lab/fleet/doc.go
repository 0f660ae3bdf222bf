// Package fleet simulates many nodes through an outage, with and without a shared store: real
// engines on a store inside the process, in virtual time. What it finds is the table in
// docs/cluster.md; `make fleet-table` writes it anew. It has no code that runs outside its tests,
// since virtual time exists only there.
package fleet
