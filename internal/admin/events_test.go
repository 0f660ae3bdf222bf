package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
)

// watch opens an event stream on a real socket.
func (b *bench) watch(query string, header http.Header) (next func() string, stop func()) {
	b.t.Helper()
	srv := httptest.NewServer(b)
	ctx, cancel := context.WithCancel(b.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/admin/v1/events"+query, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for k, v := range header {
		r.Header[k] = v
	}
	resp, err := srv.Client().Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		b.t.Fatalf("content type %q", got)
	}
	next = lines(b.t, resp.Body)
	if got := next(); got != ": events of the gateway" {
		b.t.Fatalf("first line %q", got)
	}
	return next, func() { cancel(); resp.Body.Close(); srv.Close() }
}

// event reads one event.
func event(t *testing.T, next func() string) (id string, ev resilience.Event) {
	t.Helper()
	id, kind, data := next(), next(), next()
	if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &ev); err != nil {
		t.Fatalf("%q %q %q: %v", id, kind, data, err)
	}
	if kind != "event: "+string(ev.Type) {
		t.Errorf("%q of %s", kind, ev.Type)
	}
	return strings.TrimPrefix(id, "id: "), ev
}

func TestEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	b.fail("acme", "main", "large", limited) // before anybody watches
	next, stop := b.watch("", nil)
	defer stop()
	b.fail("acme", "spare", "large", limited)
	id, ev := event(t, next)
	if ev.Type != resilience.EventCooling || ev.Key.Connection != "spare" || ev.Until.IsZero() {
		t.Errorf("%+v", ev)
	}
	b.engine.Reset(resilience.Key{Provider: "beta"}, false)
	if _, ev := event(t, next); ev.Type != resilience.EventReset {
		t.Errorf("%+v", ev)
	}

	// Who comes back gets what he has missed, then all that follows.
	for query, want := range map[string]int{"?since=0": 3, "?since=" + id: 1, "?since=2020-01-01T00:00:00Z": 3, "?since=2100-01-01T00:00:00Z": 0} {
		next, stop := b.watch(query, nil)
		for range want {
			event(t, next)
		}
		b.engine.Reset(resilience.Key{Provider: "acme", Model: "marker-of-" + query}, false)
		if _, ev := event(t, next); ev.Key.Model != "marker-of-"+query {
			t.Errorf("%s: %+v", query, ev)
		}
		stop()
		b.hub.mu.Lock()
		b.hub.kept = b.hub.kept[:3] // forget the marker
		b.hub.mu.Unlock()
	}
	header := http.Header{"Last-Event-Id": {id}}
	again, stopAgain := b.watch("?since=0", header)
	defer stopAgain()
	if _, ev := event(t, again); ev.Type != resilience.EventReset {
		t.Errorf("the header counts more than the parameter: %+v", ev)
	}
}

// TestEventIDsGoOn shows that a watcher which comes back after a restart gets all events of the
// new process.
func TestEventIDsGoOn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old := newHub(10, 10, now)
	for range 500 {
		old.publish(resilience.Event{})
	}
	last := old.last
	h := newHub(10, 10, now.Add(time.Second))
	h.publish(resilience.Event{Type: resilience.EventOpened})
	past, _ := h.subscribe(func(n numbered) bool { return n.id > last })
	if len(past) != 1 {
		t.Errorf("%d events", len(past))
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	h := newHub(4, 1, time.UnixMilli(0))
	for i := range 10 {
		h.publish(resilience.Event{Level: i})
	}
	past, _ := h.subscribe(func(numbered) bool { return true })
	var got []string
	for _, n := range past {
		got = append(got, fmt.Sprint(n.id, " ", n.event.Level))
	}
	if text := strings.Join(got, ", "); text != "7 6, 8 7, 9 8, 10 9" {
		t.Error(text)
	}
}

// TestSlowReader shows that one who does not read is dropped and told so, and holds nobody up.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	h := newHub(100, 3, time.Now())
	_, slow := h.subscribe(func(numbered) bool { return false })
	_, quick := h.subscribe(func(numbered) bool { return false })
	for i := range 5 {
		h.publish(resilience.Event{Level: i})
		<-quick.events
	}
	n := 0
	for range slow.events {
		n++
	}
	if n != 3 || !slow.slow || quick.slow || len(h.readers) != 1 {
		t.Errorf("got %d events, slow %v, quick %v, %d readers", n, slow.slow, quick.slow, len(h.readers))
	}
}

// blocked is a writer that stops after the first write until it is let go.
type blocked struct {
	*httptest.ResponseRecorder
	wrote chan struct{}
	let   chan struct{}
}

func (w *blocked) Write(p []byte) (int, error) {
	w.wrote <- struct{}{}
	<-w.let
	return w.ResponseRecorder.Write(p)
}

func TestSlowReaderIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, func(o *Options) { o.Backlog = 1 })
	w := &blocked{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	r := httptest.NewRequest("GET", "/admin/v1/events", nil)
	r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
	done := make(chan struct{})
	go func() { defer close(done); b.ServeHTTP(w, r) }()
	<-w.wrote // the greeting is stuck
	for range 3 {
		b.engine.Reset(resilience.Key{}, false)
	}
	go func() {
		for range w.wrote {
		}
	}()
	close(w.let)
	<-done
	close(w.wrote)
	if body := w.Body.String(); strings.Count(body, "event: reset") != 1 || !strings.Contains(body, "\n: dropped: the events came faster") {
		t.Error(body)
	}
}

func TestHeartbeatAndEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, world, nil)
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/admin/v1/events", nil)
		r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
		done := make(chan struct{})
		go func() { defer close(done); b.ServeHTTP(w, r) }()
		time.Sleep(31 * time.Second)
		b.Admin.Close()
		<-done
		if body := w.Body.String(); strings.Count(body, ": alive") != 2 || !strings.HasSuffix(body, ": the gateway is shutting down\n\n") {
			t.Error(body)
		}
		if n := len(b.hub.readers); n != 0 {
			t.Errorf("%d readers are left", n)
		}
	})
}
