package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/lab"
	"omniroute/resilience"
	"omniroute/store/sqlite"
	"omniroute/transport"
)

func TestSiblingsThenTheNextModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{
			{Provider: "first", APIKey: "k1"}, {Provider: "first", APIKey: "k2"}, {Provider: "second", APIKey: "k3", Model: "other"},
		}})
		resp, text := w.ask(t.Context(), "m", false)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Omniroute-Model") != "m" {
			t.Fatalf("%s %v %s, want the first upstream's answer", resp.Status, resp.Header, text)
		}
		if resp.ContentLength < 0 {
			t.Error("a whole answer has no length")
		}
		w.providers["first"].SetFault(lab.RateLimited(lab.RetryAfter(30 * time.Second)))
		for _, stream := range []bool{false, true} {
			resp, text = w.ask(t.Context(), "m", stream)
			if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Omniroute-Model") != "other" {
				t.Fatalf("%s %v %s, want the second provider's answer", resp.Status, resp.Header, text)
			}
			if stream && !strings.HasSuffix(text, "data: [DONE]") {
				t.Errorf("a stream ends with %q", text[max(0, len(text)-40):])
			}
		}
		if n := w.calls("first"); n != 3 { // one good, then each key once
			t.Errorf("the limited provider was asked %d times, want 3", n)
		}
		if w.Engine().IsReady(resilience.Key{Provider: "first", Connection: "2"}) {
			t.Error("the second key is ready after its 429")
		}
	})
}

// A stream that breaks off after content ends with an error event, never as if it were whole.
func TestCutStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{{Provider: "only"}}})
		w.providers["only"].SetFault(lab.Cut(3, lab.CutReset))
		_, text := w.ask(t.Context(), "m", true)
		if !strings.Contains(text, `"error"`) || strings.Contains(text, "[DONE]") {
			t.Errorf("the client reads %s, want an error event and no terminator", text)
		}
	})
}

// When nobody answers, the client gets what a gateway would say.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{{Provider: "only"}}})
		w.providers["only"].SetFault(lab.RateLimited(lab.RetryAfter(time.Minute)))
		resp, text := w.ask(t.Context(), "m", true)
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "60" || !strings.Contains(text, "all_targets_unavailable") {
			t.Errorf("%s, retry-after %q: %s", resp.Status, resp.Header.Get("Retry-After"), text)
		}
	})
}

// A client that leaves ends the upstream's call soon, and nobody is blamed.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(cancel context.CancelFunc, resp *http.Response){
		"by its context":      func(cancel context.CancelFunc, _ *http.Response) { cancel() },
		"by closing the body": func(_ context.CancelFunc, resp *http.Response) { resp.Body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{{Provider: "only"}}})
				w.providers["only"].SetFault(lab.Stall(2, 0))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp, err := w.post(ctx, "m", true)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				leave(cancel, resp)
				if _, err := io.ReadAll(resp.Body); err == nil {
					t.Error("an answer whose client has left reads as if it were whole")
				}
				time.Sleep(time.Second) // virtual: law A9's bound
				synctest.Wait()
				if calls := w.providers["only"].Calls(); len(calls) != 1 || !calls[0].Canceled {
					t.Errorf("the upstream saw %+v, want one call that was cancelled", calls)
				}
				if !w.Engine().IsReady(resilience.Key{Provider: "only", Connection: "1"}) {
					t.Error("the upstream was blamed for a client that left")
				}
			})
		})
	}
}

// While nothing has come, a context that ends is the error of the round trip.
func TestContextEndsEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{{Provider: "only"}}})
		w.providers["only"].SetFault(lab.SlowHeaders(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		resp, err := w.post(ctx, "m", false)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want the context's error", err)
		}
		if resp != nil {
			resp.Body.Close()
		}
	})
}

// What is out stays out when the program starts again.
func TestStateSurvives(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.db")
	run := func(use func(*testing.T, *world)) {
		synctest.Test(t, func(t *testing.T) {
			store, err := sqlite.Open(t.Context(), file, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, transport.Options{Store: store, Upstreams: []transport.Upstream{
				{Provider: "first", Connection: "main", APIKey: "k1"}, {Provider: "second", APIKey: "k2"},
			}})
			use(t, w)
			if err := w.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	run(func(t *testing.T, w *world) {
		w.providers["first"].SetFault(lab.RateLimited(lab.RetryAfter(5 * time.Minute)))
		w.ask(t.Context(), "m", false)
	})
	run(func(t *testing.T, w *world) {
		if resp, text := w.ask(t.Context(), "m", false); resp.Header.Get("X-Omniroute-Provider") != "second" {
			t.Errorf("%s %s, want the second provider's", resp.Status, text)
		}
		if n := w.calls("first"); n != 0 {
			t.Errorf("the limited account was asked %d times after the restart", n)
		}
	})
}

// Close lets requests end, and after its context has ended cuts them with an error.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{{Provider: "only"}}})
		w.providers["only"].SetFault(lab.Stall(2, time.Second))
		resp, err := w.post(t.Context(), "m", true)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		read := make(chan string)
		go func() {
			text, _ := io.ReadAll(resp.Body)
			read <- string(text)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began, other := time.Now(), make(chan time.Duration)
		go func() {
			time.Sleep(time.Second)
			if err := w.Close(t.Context()); err != nil {
				t.Errorf("closing at the same time: %v", err)
			}
			other <- time.Since(began)
		}()
		defer func() {
			if took := <-other; took < 10*time.Second {
				t.Errorf("the other Close returned after %v, while a request was running", took)
			}
		}()
		if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that requests were still running", err)
		}
		if text := <-read; !strings.Contains(text, "shutting_down") {
			t.Errorf("the client reads %s, want an error that says why", text)
		}
		if late, err := w.post(t.Context(), "m", false); err == nil {
			late.Body.Close()
			t.Error("a closed transport answers")
		}
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("closing again: %v", err)
		}
	})
}

// hanging is a store whose writes do not return before their context ends.
type hanging struct{}

func (hanging) Load(context.Context) ([]resilience.Record, error) { return nil, nil }

func (hanging) Apply(ctx context.Context, _ []resilience.Change) error {
	<-ctx.Done()
	return ctx.Err()
}

// A store that hangs does not hold up Close, even where its own context never ends.
func TestCloseWithAHangingStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{{Provider: "only"}}, Store: hanging{}})
		w.Engine().RecordFailure(resilience.Key{Provider: "only", Connection: "1"}, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit})
		time.Sleep(time.Second)
		began := time.Now()
		if err := w.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "the last changes were not stored") {
			t.Errorf("%v, want that something was not stored", err)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A client that does not read holds its upstream back, until the request's deadline; what is lost
// then is not passed over.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{{Provider: "only"}}})
		resp, err := w.post(t.Context(), "m", true)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(9 * time.Minute)
		text, err := io.ReadAll(resp.Body)
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(text)), "data: [DONE]") {
			t.Errorf("after a long silence of the client: %v, %q", err, text)
		}

		resp, err = w.post(t.Context(), "m", true)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(time.Hour)
		if text, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("after the request's deadline the rest is gone, and the client reads %q as if it were whole", text)
		}
	})
}

func TestWithConfig(t *testing.T) {
	t.Parallel()
	tr, err := transport.New(t.Context(), transport.Options{Config: []byte(`
client_keys: ["somebody-elses-key-0123456789"]
providers:
  a: {dialect: openai, base_url: "http://127.0.0.1:1/v1", connections: [{id: k, api_key: x}]}
combos:
  agent: {strategy: priority, targets: [a/m]}
`)})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close(context.Background())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.openai.com/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), `"agent"`) {
		t.Errorf("%s %s, want a list with the combo", resp.Status, text)
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	type ups = []transport.Upstream
	for want, o := range map[string]transport.Options{
		"give Upstreams or Config":     {},
		"not both":                     {Upstreams: ups{{Provider: "openai", APIKey: "k"}}, Config: []byte("providers: {}")},
		"upstream 2 has no Provider":   {Upstreams: ups{{Provider: "openai", APIKey: "k"}, {APIKey: "k"}}},
		"differ in BaseURL or Dialect": {Upstreams: ups{{Provider: "openai", APIKey: "k"}, {Provider: "openai", APIKey: "l", BaseURL: "https://x.example/v1"}}},
		`two keys for connection "a"`:  {Upstreams: ups{{Provider: "openai", Connection: "a", APIKey: "k"}, {Provider: "openai", Connection: "a", APIKey: "l"}}},
		"base_url":                     {Upstreams: ups{{Provider: "nobody", APIKey: "k"}}},
		"dialect":                      {Upstreams: ups{{Provider: "nobody", APIKey: "k", BaseURL: "https://x.example/v1", Dialect: "klingon"}}},
		"omni.yaml:2":                  {ConfigName: "omni.yaml", Config: []byte("providers:\n  a: {dialect: klingon}\n")},
	} {
		tr, err := transport.New(t.Context(), o)
		if err == nil {
			tr.Close(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// Keys are never read as YAML or as variables, and one account may be asked for several models.
func TestOddValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key := "${HOME}\"'{a:b}#!&*"
		w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{
			{Provider: "only", APIKey: key, Model: "big"}, {Provider: "only", APIKey: key, Model: "small"},
		}})
		w.providers["only"].SetScript(lab.Phase{Match: lab.OnModel("big"), Fault: lab.ModelNotFound()})
		resp, text := w.ask(t.Context(), "anything", false)
		if resp.Header.Get("X-Omniroute-Model") != "small" || resp.Header.Get("X-Omniroute-Connection") != "1" {
			t.Errorf("%s %v %s, want the small model on the one account", resp.Status, resp.Header, text)
		}
		got := w.providers["only"].LastRequest().Header.Get("Authorization")
		if want := "Bearer " + key; got != want {
			t.Errorf("the upstream got %q, want %q", got, want)
		}
	})
}

// An answer that nobody reads holds neither Close beyond its context, nor anything once the request's own
// context has ended.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	for _, closing := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, transport.Options{Upstreams: []transport.Upstream{{Provider: "one", APIKey: "k"}}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := w.post(ctx, "large", true)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			synctest.Wait() // it waits for a reader
			within, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if closing {
				within, stop = context.WithTimeout(t.Context(), time.Second)
				defer stop()
			} else {
				cancel()
			}
			start := time.Now()
			err = w.Close(within)
			if took := time.Since(start); took > 2*time.Second || errors.Is(err, context.DeadlineExceeded) != closing {
				t.Errorf("closing took %v: %v", took, err)
			}
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Error("the answer is taken for whole")
			}
		})
	}
}
