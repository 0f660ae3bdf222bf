package load

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil waits and reports whether ctx is still alive. The runtime's timers are up to a
// millisecond late in an idle process, which is as much as the gateway may cost, so the kernel's
// own are asked for short waits.
func sleepUntil(ctx context.Context, t time.Time) bool {
	for {
		d := time.Until(t)
		switch {
		case ctx.Err() != nil:
			return false
		case d <= 0:
			return true
		case d > 20*time.Millisecond:
			timer := time.NewTimer(d - 5*time.Millisecond)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
		default:
			ts := unix.NsecToTimespec(d.Nanoseconds())
			// Interrupted or refused: the loop looks at the clock again.
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
		}
	}
}
