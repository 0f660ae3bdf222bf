package relay

import (
	"compress/flate"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// maxEncodings bounds how many encodings lie over each other; each of them costs memory.
const maxEncodings = 3

// Decode undoes the content encodings of a body, the last one first. A body without an encoding
// is returned as it is. The reader gives out what it has as soon as it has it.
func Decode(body io.Reader, encodings string) (io.Reader, error) {
	if encodings == "" {
		return body, nil
	}
	names := strings.Split(encodings, ",")
	if len(names) > maxEncodings {
		return nil, fmt.Errorf("content encoding has %d layers, of which %d at most are undone", len(names), maxEncodings)
	}
	for i := len(names) - 1; i >= 0; i-- {
		switch name := strings.ToLower(strings.TrimSpace(names[i])); name {
		case "", "identity", "none", "utf-8", "utf8", "chunked", "aws-chunked", "binary": // the latter are none, and some servers write them
		case "gzip", "x-gzip":
			body = lazily(body, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
		case "br":
			body = brotli.NewReader(body)
		case "zstd":
			body = lazily(body, func(r io.Reader) (io.Reader, error) {
				return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
			})
		case "deflate":
			body = lazily(body, deflate)
		default:
			return nil, fmt.Errorf("content encoding %q is not known here", name)
		}
	}
	return body, nil
}

// lazily opens a decoder at the first read: some read a header at once, and a stream's first
// bytes may be long in coming.
func lazily(src io.Reader, open func(io.Reader) (io.Reader, error)) io.Reader {
	return &lazyReader{src: src, open: open}
}

type lazyReader struct {
	src  io.Reader
	open func(io.Reader) (io.Reader, error)
	r    io.Reader
}

func (l *lazyReader) Read(p []byte) (int, error) {
	if l.r == nil {
		r, err := l.open(l.src)
		if err != nil {
			return 0, fmt.Errorf("the body cannot be decompressed: %w", err)
		}
		l.r = r
	}
	return l.r.Read(p)
}

// deflate reads what servers call deflate: zlib by the standard, raw by a habit of some.
func deflate(r io.Reader) (io.Reader, error) {
	var head [2]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil && n == 0 {
		return nil, err
	}
	r = io.MultiReader(strings.NewReader(string(head[:n])), r)
	if n == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}
