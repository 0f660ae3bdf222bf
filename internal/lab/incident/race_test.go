//go:build race

package incident_test

// raceEnabled says that the test runs some ten times slower.
const raceEnabled = true
