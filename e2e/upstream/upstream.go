// Package upstream is a small OpenAI-shaped provider whose keys can be made to fail, one by one
// and while it runs. It counts what it is asked, and it answers nothing by accident: an unknown
// path or key is an error of the test that uses it, reported as such.
package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Mode is what a key does with a request.
type Mode int

// The modes. The zero value answers.
const (
	Answer      Mode = iota // a complete answer, streamed where that was asked for
	RateLimit               // 429 with Retry-After
	ServerError             // 500 with an error envelope
	Hang                    // take the request and never answer, until the caller goes away
	Cut                     // some content, then the connection ends; a plain answer is cut in its body
)

// RetryAfter is what RateLimit says.
const RetryAfter = 30 * time.Second

// Text is every good answer's content.
const Text = "All is well here."

// Server is one provider. Its methods may be called from any goroutine.
type Server struct {
	// URL is the base URL for clients, up to and without /chat/completions.
	URL string

	t    testing.TB
	stop chan struct{} // closed when the test ends, so that no hung request outlives it

	mu    sync.Mutex
	modes map[string]Mode
	calls map[string]int
}

// New starts a provider that knows these keys, all answering, and stops it at the test's end.
func New(t testing.TB, keys ...string) *Server {
	t.Helper()
	s := &Server{t: t, stop: make(chan struct{}), modes: map[string]Mode{}, calls: map[string]int{}}
	for _, k := range keys {
		s.modes[k] = Answer
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("upstream: unexpected %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	hs := httptest.NewServer(mux)
	s.URL = hs.URL + "/v1"
	t.Cleanup(hs.Close)
	t.Cleanup(func() { close(s.stop) })
	return s
}

// Set gives the keys a mode; without keys it is for all of them. Requests under way stay as they are.
func (s *Server) Set(m Mode, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(keys) == 0 {
		for k := range s.modes {
			s.modes[k] = m
		}
	}
	for _, k := range keys {
		if _, ok := s.modes[k]; !ok {
			s.t.Errorf("upstream: no key %q", k)
		}
		s.modes[k] = m
	}
}

// Calls returns how many requests each key has made so far.
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Total is the sum of Calls.
func (s *Server) Total() int {
	n := 0
	for _, c := range s.Calls() {
		n += c
	}
	return n
}

// admit counts the request and returns its key's mode.
func (s *Server) admit(key string) (Mode, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.modes[key]
	if ok {
		s.calls[key]++
	}
	return m, ok
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model == "" {
		s.t.Errorf("upstream: a request without a readable model: %v", err)
		fail(w, http.StatusBadRequest, "invalid_request_error", "the body cannot be read")
		return
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	mode, known := s.admit(key)
	if !known {
		s.t.Errorf("upstream: asked with the unknown key %q", key)
		fail(w, http.StatusUnauthorized, "invalid_api_key", "the key is not known")
		return
	}
	switch mode {
	case RateLimit:
		w.Header().Set("Retry-After", strconv.Itoa(int(RetryAfter/time.Second)))
		fail(w, http.StatusTooManyRequests, "rate_limit_exceeded", "Rate limit reached for requests")
	case ServerError:
		fail(w, http.StatusInternalServerError, "server_error", "The server had an error while processing your request")
	case Hang:
		select {
		case <-r.Context().Done():
		case <-s.stop:
		}
	case Answer, Cut:
		if body.Stream {
			stream(w, body.Model, mode == Cut)
		} else {
			plain(w, body.Model, mode == Cut)
		}
	}
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"error": map[string]any{"message": message, "type": code, "code": code, "param": nil},
	})
}

func plain(w http.ResponseWriter, model string, cut bool) {
	body := fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1767225600,"model":%q,`+
		`"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`, model, Text)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if cut {
		_, _ = w.Write([]byte(body[:len(body)/2]))
		hangUp(w)
	}
	_, _ = w.Write([]byte(body))
}

// stream sends a role, the words of Text, a finish reason and the terminator, each event by itself.
func stream(w http.ResponseWriter, model string, cut bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(delta, finish string) {
		_, _ = fmt.Fprintf(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":%q,`+
			`"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", model, delta, finish)
		_ = http.NewResponseController(w).Flush()
	}
	event(`{"role":"assistant","content":""}`, "null")
	for i, word := range strings.SplitAfter(Text, " ") {
		if cut && i == 2 {
			hangUp(w)
		}
		event(fmt.Sprintf(`{"content":%q}`, word), "null")
	}
	event("{}", `"stop"`)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// hangUp sends what was written and ends the connection without an end of the answer.
func hangUp(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
