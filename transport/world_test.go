package transport_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"omniroute/internal/lab"
	"omniroute/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a transport over simulated providers on a network in memory.
type world struct {
	*transport.Transport
	t         *testing.T
	providers map[string]*lab.Provider
}

// newWorld starts a provider for every name among the upstreams, at http://NAME.example, which
// takes every key.
func newWorld(t *testing.T, o transport.Options) *world {
	t.Helper()
	network := &lab.Net{}
	w := &world{t: t, providers: map[string]*lab.Provider{}}
	for i := range o.Upstreams {
		u := &o.Upstreams[i]
		host := u.Provider + ".example"
		u.Dialect, u.BaseURL = "openai", "http://"+host+"/v1"
		if w.providers[u.Provider] != nil {
			continue
		}
		l, err := network.Listen(host)
		if err != nil {
			t.Fatal(err)
		}
		p := lab.New(lab.Options{Name: u.Provider})
		s := lab.Serve(l, p)
		t.Cleanup(s.Close)
		w.providers[u.Provider] = p
	}
	o.Dial = network.DialContext
	tr, err := transport.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	w.Transport = tr
	t.Cleanup(func() {
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) calls(provider string) int { return len(w.providers[provider].Calls()) }

// post sends a chat request, to a host that does not exist.
func (w *world) post(ctx context.Context, model string, stream bool) (*http.Response, error) {
	w.t.Helper()
	body := `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]}`
	if stream {
		body = strings.TrimSuffix(body, "}") + `,"stream":true}`
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.vendor.example/proxy/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer the-clients-own")
	return w.Client().Do(r)
}

// ask is post and the whole answer.
func (w *world) ask(ctx context.Context, model string, stream bool) (*http.Response, string) {
	w.t.Helper()
	resp, err := w.post(ctx, model, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp, string(bytes.TrimSpace(text))
}
