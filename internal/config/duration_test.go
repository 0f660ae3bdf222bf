package config

import (
	"testing"
	"time"
)

func TestDurationText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 70 * time.Second: "1m10s", 5 * time.Minute: "5m", 10 * time.Second: "10s",
		time.Hour + 10*time.Second: "1h0m10s", 744 * time.Hour: "744h", 0: "0s",
	} {
		if got := DurationText(d); got != want {
			t.Errorf("%v is written as %s, want %s", d, got, want)
		}
	}
}
