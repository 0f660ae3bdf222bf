//go:build race

package route

// raceEnabled says that sync.Pool drops some of what is put back, on purpose: allocations cannot be counted.
const raceEnabled = true
