package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"omniroute/internal/config"
	"omniroute/internal/dialect"
	"omniroute/internal/relay"
)

type idKey struct{}

func idOf(r *http.Request) string {
	id, _ := r.Context().Value(idKey{}).(string)
	return id
}

const maxRequestID = 128

// requestID takes over the client's own id where it is one that a log can hold, else makes one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	ok := id != "" && len(id) <= maxRequestID
	for i := 0; ok && i < len(id); i++ {
		c := id[i]
		ok = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '.' || c == ':'
	}
	if ok {
		return id
	}
	var b [12]byte
	rand.Read(b[:])
	return "req_" + hex.EncodeToString(b[:])
}

// presentedKey returns the key that a client sent, in any of the ways that official clients use.
func presentedKey(r *http.Request) string {
	if a := r.Header.Get("Authorization"); len(a) > 7 && strings.EqualFold(a[:7], "Bearer ") {
		return strings.TrimSpace(a[7:])
	}
	for _, h := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if k := r.Header.Get(h); k != "" {
			return k
		}
	}
	return ""
}

// readBody reads a request's body within the limit, its content encoding undone.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *dialect.ErrorReport) {
	tooLarge := &dialect.ErrorReport{Code: dialect.CodeRequestTooLarge,
		Message: fmt.Sprintf("The request's body is over %s, the limit of this gateway (max_body).", size(limit))}
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close")
		return nil, tooLarge
	}
	src := http.MaxBytesReader(w, r.Body, limit)
	var body io.Reader = src
	if enc := strings.Join(r.Header["Content-Encoding"], ","); enc != "" {
		var err error
		if body, err = relay.Decode(src, enc); err != nil {
			return nil, &dialect.ErrorReport{Status: http.StatusUnsupportedMediaType, Message: "The request's " + err.Error() + "; send gzip, br, zstd, deflate or none."}
		}
		body = io.LimitReader(body, limit+1)
	}
	buf := make([]byte, 0, max(r.ContentLength, 0)+512)
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			w.Header().Set("Connection", "close")
			return nil, tooLarge
		}
		if err == io.EOF {
			return buf, nil
		}
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge
		}
		if err != nil {
			return nil, &dialect.ErrorReport{Status: http.StatusBadRequest, Message: "The request's body could not be read: " + err.Error() + "."}
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// read finds out what the request asks for.
func read(r *http.Request, body []byte) (*dialect.Request, error) {
	contentType := r.Header.Get("Content-Type")
	if t, _, err := mime.ParseMediaType(contentType); err == nil && t == "multipart/form-data" {
		return dialect.ReadMultipart(r.URL.Path, contentType, body)
	}
	return chat.ReadRequest(r.URL.Path, body)
}

// refusal puts an error about the request into words for its client.
func refusal(err error) *dialect.ErrorReport {
	if e, ok := errors.AsType[*dialect.RequestError](err); ok {
		return e.Report()
	}
	if e, ok := errors.AsType[*config.NotFoundError](err); ok {
		return &dialect.ErrorReport{Code: dialect.CodeModelNotFound, Param: "model", Message: e.Error()}
	}
	return &dialect.ErrorReport{Status: http.StatusBadRequest, Message: err.Error()}
}
