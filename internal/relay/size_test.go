package relay

import (
	"testing"
	"unsafe"
)

// TestWhatAStreamKeepsIsSmall bounds what each open stream holds. The bounds are sizes that Go allocates:
// one byte more costs up to a quarter.
func TestWhatAStreamKeepsIsSmall(t *testing.T) {
	for _, c := range []struct {
		what        string
		size, bound uintptr
	}{
		{"call", unsafe.Sizeof(call{}), 512},
		{"exchange", unsafe.Sizeof(exchange{}), 448},
		{"Request", unsafe.Sizeof(Request{}), 128},
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && c.size > c.bound {
			t.Errorf("a %s takes %d bytes, more than %d; what only some need can be behind a pointer", c.what, c.size, c.bound)
		}
	}
}
