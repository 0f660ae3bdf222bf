package server

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"omniroute/internal/relay"
)

// ServeHTTP sends a request to the API that it is for. While the state is being loaded requests
// wait, but for those that ask whether it is.
func (m *Main) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.early(w, r) || m.own(w, r) {
		return
	}
	m.requests.enter()
	defer m.requests.leave()
	m.gateway.ServeHTTP(w, r)
}

// early holds a request until the state is loaded, and reports whether it has answered it instead.
func (m *Main) early(w http.ResponseWriter, r *http.Request) bool {
	select {
	case <-m.loaded:
	default:
		switch r.URL.Path {
		case "/healthz":
			writePlain(w, http.StatusOK, `{"status":"ok"}`)
			return true
		case "/readyz":
			writeLoading(w)
			return true
		}
		select {
		case <-m.loaded:
		case <-r.Context().Done():
			if context.Cause(r.Context()) != relay.ErrShuttingDown { //nolint:errorlint // our own value, never wrapped
				return true // the client has left
			}
			writePlain(w, http.StatusServiceUnavailable, `{"status":"`+errDraining.Error()+`"}`)
			return true
		}
	}
	return false
}

// own answers what is not for the client API, and reports whether it was that.
func (m *Main) own(w http.ResponseWriter, r *http.Request) bool {
	path := r.URL.Path
	if path == "/healthz" || path == "/readyz" || path == "/admin" || strings.HasPrefix(path, "/admin/") {
		m.admin.ServeHTTP(w, r)
		return true
	}
	if path == "/dashboard" || strings.HasPrefix(path, "/dashboard/") {
		m.dashboard.ServeHTTP(w, r)
		return true
	}
	if path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		if m.scrapes != nil {
			writePlain(w, http.StatusNotFound, `{"error":"metrics have an address of their own here (metrics_listen)"}`)
			return true
		}
		m.metrics.Handler().ServeHTTP(w, r)
		return true
	}
	return false
}

func writeLoading(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writePlain(w, http.StatusServiceUnavailable, `{"status":"`+errLoading.Error()+`"}`)
}

func writePlain(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body + "\n"))
}

// requests counts the clients' requests that run. A WaitGroup would not do: requests may still
// begin while somebody waits for the end of all.
type requests struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed at zero, where somebody waits
}

func (q *requests) enter() {
	q.mu.Lock()
	q.n++
	q.mu.Unlock()
}

func (q *requests) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n--
	if q.n == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// running returns how many there are, and a channel that is closed when there are none.
func (q *requests) running() (int, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n > 0 {
		if q.idle == nil {
			q.idle = make(chan struct{})
		}
		return q.n, q.idle
	}
	none := make(chan struct{})
	close(none)
	return 0, none
}
