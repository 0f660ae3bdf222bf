//go:build !race

package incident_test

const raceEnabled = false
