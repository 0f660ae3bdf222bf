package relay

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBufferFill(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	text := strings.Repeat("0123456789", 1000)
	for name, c := range map[string]struct {
		r           io.Reader
		size, limit int64
		want        string
		err         error
	}{
		"known length":       {strings.NewReader(text), int64(len(text)), 1 << 20, text, nil},
		"unknown length":     {strings.NewReader(text), -1, 1 << 20, text, nil},
		"a promise too low":  {strings.NewReader(text), 3, 1 << 20, text, nil},
		"a promise too high": {strings.NewReader(text), 1 << 40, 1 << 20, text, nil},
		"byte by byte":       {iotest.OneByteReader(strings.NewReader(text)), -1, 1 << 20, text, nil},
		"data with the end":  {iotest.DataErrReader(strings.NewReader(text)), -1, 1 << 20, text, nil},
		"at the limit":       {strings.NewReader(text), -1, int64(len(text)), text, nil},
		"over the limit":     {strings.NewReader(text), -1, int64(len(text)) - 1, "", io.ErrShortBuffer},
		"broken":             {io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), -1, 1 << 20, "abc", broken},
		"nothing":            {strings.NewReader(""), 0, 1 << 20, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuffer()
			defer b.Release()
			err := b.Fill(c.r, c.size, c.limit)
			if !errors.Is(err, c.err) || !errors.Is(err, io.ErrShortBuffer) && !bytes.Equal(b.B, []byte(c.want)) {
				t.Errorf("%d bytes, %v", len(b.B), err)
			}
			if cap(b.B) > 1<<20 {
				t.Errorf("%d bytes were set aside for %d", cap(b.B), len(b.B))
			}
		})
	}
}

// TestBufferIsKeptWhileHeld: bytes that a transport may still read belong to nobody else.
func TestBufferIsKeptWhileHeld(t *testing.T) {
	t.Parallel()
	b := NewBuffer()
	b.B = append(b.B, "mine"...)
	b.Retain()
	u := &upload{buffer: b}
	b.Release()
	for range 100 {
		other := NewBuffer()
		if other == b {
			t.Fatal("a buffer that is held was given out")
		}
		other.B = append(other.B, "other"...)
		other.Release()
	}
	u.Close()
	u.Close() // a transport may close a body twice
	if n := b.holders.Load(); n != 0 {
		t.Errorf("%d holders", n)
	}
}
