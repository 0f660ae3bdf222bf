package redis

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"omniroute/store/storetest"
)

func TestAudits(t *testing.T) {
	t.Parallel()
	s := New(Options{Address: miniredis.RunT(t).Addr(), Node: "a", resp2: true, audits: 50})
	t.Cleanup(func() { _ = s.Close() })
	storetest.Audits(t, s, 50)
}
