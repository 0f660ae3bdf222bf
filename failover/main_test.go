package failover

import (
	"testing"

	"go.uber.org/goleak"
)

// Whoever starts a goroutine waits for it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
