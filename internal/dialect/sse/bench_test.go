package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// BenchmarkReader reads streams of events of several sizes from memory.
func BenchmarkReader(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
		end  string
	}{{"chunk300", 300, "\n"}, {"chunk300crlf", 300, "\r\n"}, {"chunk2k", 2 << 10, "\n"}, {"large64k", 64 << 10, "\n"}} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(strings.Repeat("data: "+strings.Repeat("x", c.size)+c.end+c.end, max(1, (1<<20)/c.size)))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var src bytes.Reader
			for b.Loop() {
				src.Reset(text)
				r := NewReader(&src)
				for {
					if _, err := r.Next(); errors.Is(err, io.EOF) {
						break
					}
				}
			}
		})
	}
}
