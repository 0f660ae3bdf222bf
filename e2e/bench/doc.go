// Package bench measures what admission costs beside well-known circuit breakers, in one process
// and on one machine: numbers from different runs are not comparable.
//
//	make bench-micro                       # everything
//	make bench-micro BENCH=Admit COUNT=10  # for a comparison with benchstat
//
// Every benchmark of a family does the same work: ask whether a healthy upstream may be called
// and report one success, alone ("serial") and from all cores at once on the same breaker
// ("parallel").
package bench
