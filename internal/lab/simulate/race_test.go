//go:build race

package simulate

// raceEnabled says that the test runs some ten times slower.
const raceEnabled = true
