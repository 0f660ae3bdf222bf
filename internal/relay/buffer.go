package relay

import (
	"io"
	"math/bits"
	"net/http"
	"sync"
	"sync/atomic"

	"omniroute/internal/dialect"
)

// Buffer holds the bytes of one body and goes back to a pool when its last holder has released
// it. A request's body is held by its exchange until an answer is committed, and by each attempt
// for as long as its transport may read it, which can be longer than the attempt itself.
type Buffer struct {
	// B is the body. It must not be changed while somebody else holds the buffer.
	B []byte

	holders atomic.Int32

	share Share
	taken int64 // of the share
}

const (
	// startBuffer is what a body gets before anything is known of it.
	startBuffer = 4 << 10
	// maxPooled is the largest buffer that is kept for others.
	maxPooled = 1 << 20
)

var buffers = sync.Pool{New: func() any { return new(Buffer) }}

// NewBuffer returns an empty buffer with one holder.
func NewBuffer() *Buffer {
	b := buffers.Get().(*Buffer)
	b.holders.Store(1)
	return b
}

// Within makes the buffer take its bytes from a share, until it is released.
func (b *Buffer) Within(s Share) { b.share = s }

// Retain adds a holder.
func (b *Buffer) Retain() {
	if b != nil {
		b.holders.Add(1)
	}
}

// Release takes a holder away. With the last one B must not be used any more.
func (b *Buffer) Release() {
	if b == nil || b.holders.Add(-1) > 0 {
		return
	}
	b.share.give(b.taken)
	b.share, b.taken = Share{}, 0
	if cap(b.B) > maxPooled {
		b.B = nil
	}
	b.B = b.B[:0]
	buffers.Put(b)
}

// Fill appends all of r, which is size bytes long or, below 0, of unknown length, and stops with
// io.ErrShortBuffer once there are more than limit bytes, and with ErrNoRoom where its share has none. A promised size is believed only as
// bytes come, so that promises cost nothing.
func (b *Buffer) Fill(r io.Reader, size, limit int64) error {
	b.grow(min(max(size, 0)+1, 256<<10))
	for {
		n, err := r.Read(b.B[len(b.B):cap(b.B)])
		b.B = b.B[:len(b.B)+n]
		switch {
		case int64(len(b.B)) > limit:
			return io.ErrShortBuffer
		case !b.hold(size):
			return ErrNoRoom
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(b.B) == cap(b.B):
			more := int64(len(b.B))
			if left := size + 1 - more; left > 0 {
				more = min(more, left)
			}
			b.grow(more)
		}
	}
}

// hold takes from the share what the body has come to, in steps that double, so that it asks seldom.
func (b *Buffer) hold(size int64) bool {
	n := int64(len(b.B))
	if n <= b.taken {
		return true
	}
	want := max(int64(startBuffer), 1<<bits.Len64(uint64(n-1)))
	if size >= n {
		want = min(want, size)
	}
	if !b.share.take(b.taken, want-b.taken) {
		return false
	}
	b.taken = want
	return true
}

// grow makes room for n more bytes.
func (b *Buffer) grow(n int64) {
	if need := int64(len(b.B)) + n; need > int64(cap(b.B)) {
		to := make([]byte, len(b.B), max(need, startBuffer))
		copy(to, b.B)
		b.B = to
	}
}

// upload is a request's body on its way to an upstream. It holds the bytes until it is closed and not
// after: a transport keeps its request for as long as the answer lasts. It may close the body more than
// once, and while it reads.
type upload struct {
	mu     sync.Mutex
	body   *dialect.Body // nil once it is closed
	buffer *Buffer
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.body == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	return u.body.Read(p)
}

// WriteTo implements io.WriterTo.
func (u *upload) WriteTo(w io.Writer) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.body == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	return u.body.WriteTo(w)
}

// Close implements io.Closer.
func (u *upload) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.buffer.Release()
	u.body, u.buffer = nil, nil
	return nil
}
