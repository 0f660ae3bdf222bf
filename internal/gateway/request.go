package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"omniroute/internal/config"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/translate"
	"omniroute/internal/relay"
)

// idOf returns the request's id, which is set before anything else is done.
func idOf(w http.ResponseWriter) string {
	if id := w.Header()["X-Request-Id"]; len(id) > 0 {
		return id[0]
	}
	return ""
}

// What a request's headers may come to. Upstreams and proxies take less than servers in Go.
const (
	maxHeaders     = 256
	maxHeaderBytes = 64 << 10
)

func tooManyHeaders(h http.Header) bool {
	fields, size := 0, 0
	for name, values := range h {
		fields += len(values)
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	return fields > maxHeaders || size > maxHeaderBytes
}

// asksForWebSocket tells a wish that cannot be met. Others are offers, which a server may leave: Java's client, for
// one, offers HTTP/2 with every first request over plain HTTP.
func asksForWebSocket(h http.Header) bool {
	for _, line := range h["Upgrade"] {
		for protocol := range strings.SplitSeq(line, ",") {
			if name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/"); strings.EqualFold(name, "websocket") {
				return true
			}
		}
	}
	return false
}

// plainPath reports whether a path means the same to everybody: the upstream gets it too, and one
// with dot segments, or with what is a query to some, might lead to a call that was not asked for.
func plainPath(path string) bool {
	for i := 0; i < len(path); i++ {
		if c := path[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '?' || c == '#' || c == '%' || c == ';' {
			return false
		}
	}
	return !dotSegments(path)
}

// oneSlash takes repeated slashes for one, as they come of a base URL with a slash at its end. The mux would
// answer with a redirect, which not every client follows with its body.
func oneSlash(r *http.Request) {
	for strings.Contains(r.URL.Path, "//") {
		r.URL.Path = strings.ReplaceAll(r.URL.Path, "//", "/")
		r.URL.RawPath = strings.ReplaceAll(r.URL.RawPath, "//", "/")
	}
}

func dotSegments(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
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

var callers = maphash.MakeSeed()

// caller tells the clients of one key from those of another, without keeping the key.
func caller(r *http.Request) uint64 { return maphash.String(callers, presentedKey(r)) }

// readBody reads a request's body within the limit, its content encoding undone. The caller
// releases it.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request, cfg *config.Config) (*relay.Buffer, *dialect.ErrorReport) {
	limit := cfg.MaxBody
	tooLarge := func() *dialect.ErrorReport {
		w.Header().Set("Connection", "close")
		return &dialect.ErrorReport{Code: dialect.CodeRequestTooLarge,
			Message: fmt.Sprintf("The request's body is over %s, the limit of this gateway (max_body).", size(limit))}
	}
	if r.ContentLength > limit {
		return nil, tooLarge()
	}
	src, length := io.Reader(http.MaxBytesReader(w, r.Body, limit)), r.ContentLength
	if enc := strings.Join(r.Header["Content-Encoding"], ","); enc != "" {
		var err error
		if src, err = relay.Decode(src, enc); err != nil {
			return nil, &dialect.ErrorReport{Status: http.StatusUnsupportedMediaType, Message: "The request's " + err.Error() + "; send gzip, br, zstd, deflate or none."}
		}
		length = -1
	}
	body := relay.NewBuffer()
	body.Within(relay.Share{Of: &g.bodies, Most: cfg.MaxBodies, Caller: caller(r), Fair: len(cfg.ClientKeys) > 1})
	slow := &impatient{src: src, out: http.NewResponseController(w)}
	err := body.Fill(slow, length, limit)
	slow.done()
	if err == nil {
		return body, nil
	}
	body.Release()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.Header().Set("Connection", "close")
		return nil, &dialect.ErrorReport{Status: http.StatusRequestTimeout, Message: "The request's body came too slowly."}
	}
	if errors.Is(err, relay.ErrNoRoom) {
		w.Header().Set("Connection", "close")
		return nil, &dialect.ErrorReport{Code: dialect.CodeQueueFull, RetryAfter: time.Second,
			Message: "The bodies of the requests that run come to as much as this gateway holds at once (max_bodies); try again when some are answered."}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || errors.Is(err, io.ErrShortBuffer) {
		return nil, tooLarge()
	}
	return nil, &dialect.ErrorReport{Status: http.StatusBadRequest, Message: "The request's body could not be read: " + err.Error() + "."}
}

// A body has bodyTime to come, and for every bodyStep bytes of it as much again, so that a client
// which sends a byte a second does not hold a place for ever and a slow line may send what it has.
const (
	bodyTime = 30 * time.Second
	bodyStep = 1 << 20
)

// impatient reads a request's body and sets its connection's deadline as the body comes.
type impatient struct {
	src  io.Reader
	out  *http.ResponseController
	read int64
	next int64 // move the deadline at so many bytes
}

// Read implements io.Reader.
func (r *impatient) Read(b []byte) (int, error) {
	if r.read >= r.next {
		r.next = r.read + bodyStep
		_ = r.out.SetReadDeadline(time.Now().Add(bodyTime)) // a server that cannot has limits of its own
	}
	n, err := r.src.Read(b)
	r.read += int64(n)
	return n, err
}

func (r *impatient) done() { _ = r.out.SetReadDeadline(time.Time{}) }

func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// maxModel bounds a model's name, in bytes. Names become keys, headers and log fields.
const maxModel = 256

// modelName reports whether a model may be called so. Some upstreams have the name in their path: one that leads
// elsewhere there would go round what a client key may ask for, and ask with our credentials for what no call of this API is.
func modelName(name string) bool {
	return len(name) <= maxModel && !strings.ContainsFunc(name, unicode.IsControl) && utf8.ValidString(name) &&
		!strings.ContainsAny(name, `?\`) && !dotSegments(name)
}

// read finds out what the request asks for.
func read(d dialect.Dialect, r *http.Request, body []byte) (*dialect.Request, error) {
	asked, err := readAny(d, r, body)
	if err == nil && !modelName(asked.Model) {
		return nil, &dialect.RequestError{Param: "model", Offset: -1, Message: fmt.Sprintf(
			"The model's name is longer than %d bytes, or holds control characters, a question mark, a backslash or a dot segment; no model is called so.", maxModel)}
	}
	return asked, err
}

func readAny(d dialect.Dialect, r *http.Request, body []byte) (*dialect.Request, error) {
	contentType := r.Header.Get("Content-Type")
	if contentType == dialect.ErrorContentType { // the usual case, without a closer look
		return readJSON(d, r, body)
	}
	if t, _, err := mime.ParseMediaType(contentType); err == nil && t == "multipart/form-data" {
		return dialect.ReadMultipart(r.URL.Path, contentType, body)
	}
	return readJSON(d, r, body)
}

func readJSON(d dialect.Dialect, r *http.Request, body []byte) (*dialect.Request, error) {
	asked, err := d.ReadRequest(r.URL.Path, body)
	if err == nil && asked.Stream && d == google && r.URL.Query().Get("alt") != "sse" {
		return nil, &dialect.RequestError{Param: "alt", Offset: -1, Message: "Streams are sent as server-sent events here; add ?alt=sse to the URL."}
	}
	if err == nil && d == chat {
		return translate.AsChat(asked)
	}
	return asked, err
}

// refusal puts an error about the request into words for its client.
func refusal(err error) *dialect.ErrorReport {
	if e, ok := errors.AsType[*dialect.RequestError](err); ok {
		return e.Report()
	}
	if e, ok := errors.AsType[*config.NotFoundError](err); ok {
		return &dialect.ErrorReport{Code: dialect.CodeModelNotFound, Param: "model", Message: e.Error()}
	}
	if e, ok := errors.AsType[*neutral.UnsupportedError](err); ok {
		return &dialect.ErrorReport{Status: http.StatusBadRequest, Code: "unsupported_parameter", Param: e.Field, Message: e.Error()}
	}
	return &dialect.ErrorReport{Status: http.StatusBadRequest, Message: err.Error()}
}
