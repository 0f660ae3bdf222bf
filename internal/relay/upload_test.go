package relay

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"omniroute/internal/dialect"
)

// TestUploadLetsGo: a transport may close a body while it reads, and keeps it for long afterwards.
func TestUploadLetsGo(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("x"), 64<<10)
	for range 100 {
		b := NewBuffer()
		b.B = append(b.B, text...)
		_, body := (&dialect.Request{Body: b.B}).Open("m")
		u := &upload{body: body, buffer: b}
		var both sync.WaitGroup
		both.Go(func() {
			for p := make([]byte, 1000); ; {
				n, err := u.Read(p)
				if bytes.ContainsFunc(p[:n], func(r rune) bool { return r != 'x' }) {
					t.Error("bytes of somebody else")
				}
				if err != nil {
					if err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) { //nolint:errorlint // unwrapped by contract
						t.Error(err)
					}
					return
				}
			}
		})
		both.Go(func() {
			u.Close()
			other := NewBuffer() // it may get the same memory
			other.B = append(other.B, "another's"...)
			other.Release()
		})
		both.Wait()
		if u.body != nil || u.buffer != nil {
			t.Fatal("it still holds the bytes")
		}
		if _, err := u.WriteTo(io.Discard); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("a closed body was written: %v", err)
		}
	}
}
