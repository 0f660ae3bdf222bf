package load

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTheLoopIsOpen: the server answers nothing until everything has arrived, which a generator
// that waits for answers would never live to see, and the wait of the first counts in full.
func TestTheLoopIsOpen(t *testing.T) {
	t.Parallel()
	const count, rate = 50, 1000
	var all sync.WaitGroup
	all.Add(count)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all.Done()
		all.Wait()
		_, _ = io.WriteString(w, `{"choices":[]}`)
	}))
	t.Cleanup(srv.Close)
	c := NewClient(srv.URL, "")
	t.Cleanup(c.Close)
	run := Plan{Client: c, Shape: Only(Chat), Model: "m", Rate: rate, Count: count}.Go(t.Context())
	if len(run.Samples) != count || run.Errors() > 0 {
		t.Fatalf("%d samples, %d errors: %s", len(run.Samples), run.Errors(), run.FirstError())
	}
	lastDue := time.Duration(count-1) * time.Second / rate
	for i, s := range run.Samples {
		if want := time.Duration(i) * time.Second / rate; s.Due != want {
			t.Fatalf("request %d was due at %v, want %v", i, s.Due, want)
		}
		if s.First < lastDue-s.Due {
			t.Errorf("request %d: %v to the first content, but the last request was due %v later", i, s.First, lastDue-s.Due)
		}
		if s.Late < 0 || s.Late > s.First || s.First > s.Total {
			t.Errorf("request %d: late %v, first %v, total %v are out of order", i, s.Late, s.First, s.Total)
		}
	}
}

func TestSaturateCountsAnswersOnly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 10 {
			cancel() // the ones before were answered: each client asks again only then
		}
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	t.Cleanup(srv.Close)
	c := NewClient(srv.URL, "")
	t.Cleanup(c.Close)
	rate, run := Saturate(ctx, c, Chat, "m", 2, time.Minute)
	if rate != 0 || !strings.Contains(run.FirstError(), "503") {
		t.Errorf("rate %v with the error %q, want 0 and a 503", rate, run.FirstError())
	}
}

func TestStreamIsRead(t *testing.T) {
	t.Parallel()
	const (
		role   = `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n"
		word   = `data: {"choices":[{"delta":{"content":"hi"}}]}` + "\n\n"
		end    = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		done   = "data: [DONE]\n\n"
		broken = `data: {"error":{"message":"broke off"}}` + "\n\n"
	)
	for name, c := range map[string]struct {
		body   string
		pieces int
		err    string
	}{
		"good":          {role + ": ping\n\n" + word + word + end + done, 2, ""},
		"no terminator": {role + word + end, 1, "no terminator"},
		"error event":   {role + word + broken, 1, "an error in the stream"},
		"only a role":   {role + end + done, 0, "no content"},
		"nothing":       {"", 0, "no terminator"},
	} {
		var s Sample
		s.stream(strings.NewReader(c.body), time.Now())
		if s.Pieces != c.pieces || !strings.Contains(s.Err, c.err) || c.err == "" && !s.Good() {
			t.Errorf("%s: %d pieces, error %q; want %d, %q", name, s.Pieces, s.Err, c.pieces, c.err)
		}
		if (s.First > 0) != (c.pieces > 0) {
			t.Errorf("%s: first content after %v with %d pieces", name, s.First, c.pieces)
		}
	}
	var s Sample
	s.stream(io.MultiReader(strings.NewReader(role+word), failing{}), time.Now())
	if !strings.HasPrefix(s.Err, "cut: ") {
		t.Errorf("a broken connection is told as %q", s.Err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A stream may bring its role and its first word in one piece, or a word may be cut.
func TestHasContent(t *testing.T) {
	t.Parallel()
	for events, want := range map[string]bool{
		`{"content":""}`:                     false,
		`{"content":"a"}`:                    true,
		`{"content":""}` + `{"content":"a"}`: true,
		`{"content":""}` + `{"content":"`:    false,
		`{"delta":{}}`:                       false,
	} {
		if got := hasContent([]byte(events)); got != want {
			t.Errorf("%s: %v", events, got)
		}
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, s := range Shapes() {
		var v struct {
			Model    string
			Stream   bool
			Messages []struct{ Role string }
		}
		body := s.Body("some/model")
		if err := json.Unmarshal(body, &v); err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if v.Model != "some/model" || v.Stream != s.Stream || len(v.Messages) == 0 {
			t.Errorf("%s: asks for %q, stream %v, with %d messages", s.Name, v.Model, v.Stream, len(v.Messages))
		}
		want := 1 << 10
		if s.Name != Chat.Name && s.Name != Stream.Name {
			want = 100 << 10
		}
		if len(body) != want {
			t.Errorf("%s: %d bytes, want %d", s.Name, len(body), want)
		}
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	v := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for q, want := range map[float64]time.Duration{0: 1, 0.1: 1, 0.5: 5, 0.51: 6, 0.9: 9, 0.99: 10, 1: 10} {
		if got := Quantile(v, q); got != want {
			t.Errorf("quantile %v of 1..10 is %d, want %d", q, got, want)
		}
	}
	if got := Quantile([]time.Duration(nil), 0.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}
