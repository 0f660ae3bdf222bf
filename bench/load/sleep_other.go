//go:build !linux

package load

import (
	"context"
	"time"
)

// sleepUntil waits and reports whether ctx is still alive.
func sleepUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
