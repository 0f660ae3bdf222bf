// Package arch holds the tests that keep the tree as ARCHITECTURE.md describes it: which package
// may import which, and what no file of the project may contain. It has no code of its own.
package arch
