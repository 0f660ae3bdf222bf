package classify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxBody is how much of a body is read, compressed or not. Every error answer that was ever
// seen states its cause in the first few KiB.
const maxBody = 64 << 10

// plainBody returns the body's first 64 KiB, decompressed where Content-Encoding says so and
// the bytes agree. What does not decompress is returned as it is: the header may be a leftover.
func plainBody(h http.Header, body []byte) []byte {
	body = body[:min(len(body), maxBody)]
	encoding := h.Get("Content-Encoding")
	if encoding == "" || len(body) == 0 || readable(body) {
		return body
	}
	codings := strings.Split(encoding, ",")
	for i := len(codings) - 1; i >= 0 && i > len(codings)-4; i-- {
		plain := decode(strings.ToLower(strings.TrimSpace(codings[i])), body)
		if plain == nil {
			break
		}
		body = plain
	}
	return body
}

// readable reports whether the body begins with text, which no compressed one does.
func readable(body []byte) bool {
	for _, c := range body[:min(len(body), 24)] {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}

// decode undoes one content coding; nil means that the bytes are not in it. A body that is cut
// short gives what could be read of it.
func decode(coding string, body []byte) []byte {
	var r io.Reader
	var err error
	switch coding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		if r, err = zlib.NewReader(bytes.NewReader(body)); err != nil {
			r, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	case "br":
		r = brotli.NewReader(bytes.NewReader(body))
	case "zstd":
		var d *zstd.Decoder
		d, err = zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(8<<20), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderLowmem(true))
		if err == nil {
			defer d.Close()
			r = d
		}
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	plain, _ := io.ReadAll(io.LimitReader(r, maxBody))
	if len(plain) == 0 {
		return nil
	}
	return plain
}
