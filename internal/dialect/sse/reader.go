// Package sse reads and writes server-sent events the way a relay needs them: one block at
// a time, with its bytes as they came and its fields in place.
//
// The reader takes LF, CR and CRLF line ends (also split between reads), a byte order mark,
// comments, several fields and data lines in a block, and a last block without its blank
// line. The same bytes give the same events however they are cut into reads. A block is
// bounded; memory grows with the block at hand and goes back after it.
package sse

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// DefaultMaxEvent is the largest block that a Reader takes unless told otherwise:
	// 8 MiB of data and room for its framing.
	DefaultMaxEvent = 8<<20 + 1<<10

	startBuf = 512      // what an idle stream costs: events of models are smaller
	busyBuf  = 4 << 10  // what a stream gets that brings more at a time than its buffer holds
	keepBuf  = 64 << 10 // a larger buffer is given back as soon as its block is done
	calm     = 16       // a smaller one after so many blocks that needed a quarter of it

	maxEmptyReads = 100
)

// TooLargeError says that a block exceeded the reader's limit. The stream cannot go on.
type TooLargeError struct {
	Limit int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the upstream sent a single event of more than %d bytes", e.Limit)
}

// Reader reads events from a stream. It must not be used by several goroutines at once.
type Reader struct {
	src io.Reader
	max int

	// buf[start:end] is unread, with line ends already turned into LF.
	buf        []byte
	start, end int
	line       int  // where the line begins that scanning stopped in
	search     int  // from where on that line's end has not been looked for yet
	swallowLF  bool // the last byte read was a CR: an LF that follows belongs to it
	begun      bool // the byte order mark was looked for

	got   int  // bytes that the last read brought
	full  bool // it filled most of the buffer, so that more may have been there
	quiet int  // blocks in a row that left most of the buffer unused
	event Event
	data  []byte // scratch for events of several data lines
	err   error
}

// NewReader returns a Reader with the default limit. It reads no further ahead than its
// buffer of at most 4 KiB, or what the block at hand needs.
func NewReader(src io.Reader) *Reader { return NewReaderSize(src, DefaultMaxEvent) }

// NewReaderSize returns a Reader that takes blocks of at most maxEvent bytes, the blank
// line not counted. Values below 1 mean DefaultMaxEvent.
func NewReaderSize(src io.Reader, maxEvent int) *Reader {
	if maxEvent < 1 {
		maxEvent = DefaultMaxEvent
	}
	return &Reader{src: src, max: maxEvent}
}

// Next returns the next block, comments included. The event and its slices are valid until
// the next call. At the end of the stream it returns io.EOF, after having delivered a last
// block without blank line. A transport error drops an unfinished block, since that is cut
// short. A block over the limit gives a *TooLargeError. Errors are final.
func (r *Reader) Next() (*Event, error) {
	r.release()
	for {
		if r.begun || r.skipMark() {
			if ev := r.scan(); ev != nil {
				return ev, nil
			}
		}
		if r.err != nil {
			return r.finish()
		}
		if r.end-r.start > r.max {
			r.err = &TooLargeError{Limit: r.max}
			continue
		}
		r.fill()
	}
}

// skipMark drops a byte order mark. It reports false while more bytes are needed to tell.
func (r *Reader) skipMark() bool {
	const mark = "\xef\xbb\xbf"
	got := r.buf[r.start:r.end]
	if len(got) < len(mark) && r.err == nil && string(got) == mark[:len(got)] {
		return false
	}
	if bytes.HasPrefix(got, []byte(mark)) {
		r.start += len(mark)
	}
	r.begun, r.line, r.search = true, r.start, r.start
	return true
}

// scan looks for the blank line that ends the block at r.start.
func (r *Reader) scan() *Event {
	for {
		i := bytes.IndexByte(r.buf[r.search:r.end], '\n')
		if i < 0 {
			r.search = r.end
			return nil
		}
		end := r.search + i
		blank := end == r.line
		r.line, r.search = end+1, end+1
		switch {
		case !blank:
		case end == r.start: // a blank line before any other
			r.start++
		case end-r.start > r.max:
			r.err = &TooLargeError{Limit: r.max}
			return nil
		default:
			return r.take(end + 1)
		}
	}
}

// take parses the block that ends before end and moves past it.
func (r *Reader) take(end int) *Event {
	raw := r.buf[r.start:end:end]
	r.start = end
	r.parse(raw)
	return &r.event
}

// finish delivers what is left at a clean end, once.
func (r *Reader) finish() (*Event, error) {
	left := r.end - r.start
	// A wrapped io.EOF is some layer's failure, not the end of the stream.
	clean := r.err == io.EOF //nolint:errorlint // as said
	if clean && left > r.max {
		r.err = &TooLargeError{Limit: r.max}
		clean = false
	}
	if clean && left > 0 {
		if r.buf[r.end-1] != '\n' {
			r.grow(1)
			r.buf[r.end] = '\n'
			r.end++
		}
		r.grow(1)
		r.buf[r.end] = '\n'
		r.end++
		r.line, r.search = r.end, r.end
		ev := r.take(r.end)
		ev.Unterminated = true
		return ev, nil
	}
	r.buf, r.data, r.event = nil, nil, Event{}
	r.start, r.end, r.line, r.search = 0, 0, 0, 0
	return nil, r.err
}

// fill reads once and turns the line ends of what came into LF.
func (r *Reader) fill() {
	if r.full && len(r.buf) < busyBuf {
		r.move(make([]byte, 2*len(r.buf)))
	}
	r.grow(1)
	for range maxEmptyReads {
		n, err := r.src.Read(r.buf[r.end:])
		r.got, r.full = n, n == len(r.buf)-r.end && n >= len(r.buf)/2
		if n > 0 {
			r.end += r.normalise(r.buf[r.end : r.end+n])
		}
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// normalise turns CRLF and CR into LF in place and returns the new length. A CR at the end
// counts at once, so that no event waits for the byte after it.
func (r *Reader) normalise(b []byte) int {
	from := 0
	if r.swallowLF && b[0] == '\n' {
		from = 1
	}
	r.swallowLF = b[len(b)-1] == '\r'
	i := bytes.IndexByte(b[from:], '\r')
	if i < 0 {
		if from == 0 {
			return len(b)
		}
		return copy(b, b[from:])
	}
	out := copy(b, b[from:from+i])
	for in := from + i; in < len(b); {
		// b[in] is a CR here.
		b[out] = '\n'
		out++
		in++
		if in < len(b) && b[in] == '\n' {
			in++
		}
		next := bytes.IndexByte(b[in:], '\r')
		if next < 0 {
			next = len(b) - in
		}
		out += copy(b[out:], b[in:in+next])
		in += next
	}
	return out
}

// grow makes room for n bytes at the end, by moving what is unread to the front or by a
// larger buffer.
func (r *Reader) grow(n int) {
	if r.end+n <= len(r.buf) {
		return
	}
	unread := r.end - r.start
	// Moving is worth it when at least half of the buffer becomes free; at full size it is
	// all that is left. The full size holds the largest block and one more byte, by which
	// fill can tell that it is too large.
	full := max(startBuf, r.max+startBuf)
	if unread+n <= len(r.buf) && (unread <= len(r.buf)/2 || len(r.buf) >= full) {
		r.move(r.buf)
		return
	}
	r.move(make([]byte, min(max(startBuf, 2*len(r.buf)), full)))
}

// release gives back a buffer that the blocks of late did not need.
func (r *Reader) release() {
	if len(r.buf) <= startBuf {
		return
	}
	if len(r.event.Raw) > len(r.buf)/4 || len(r.buf) <= busyBuf && r.got > startBuf {
		r.quiet = 0
	} else {
		r.quiet++
	}
	unread := r.end - r.start
	if unread > startBuf/2 || len(r.buf) <= keepBuf && r.quiet < calm {
		return
	}
	r.quiet = 0
	r.data = nil
	r.move(make([]byte, startBuf))
}

func (r *Reader) move(to []byte) {
	copy(to, r.buf[r.start:r.end])
	r.line -= r.start
	r.search -= r.start
	r.end -= r.start
	r.start = 0
	r.buf = to
}
