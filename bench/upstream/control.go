package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"omniroute/internal/lab"
)

// control is the server's side of Control.
type control struct {
	lean      *Lean
	providers map[string]*lab.Provider
}

// order is a change of one simulated provider.
type order struct {
	// Fault is a name that lab.ParseFault reads; empty makes the provider well.
	Fault string `json:"fault"`
	// Connection limits the fault to one connection.
	Connection string `json:"connection"`
}

func (c *control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /providers/{name}/fault", func(w http.ResponseWriter, r *http.Request) {
		p := c.providers[r.PathValue("name")]
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || p == nil {
			http.Error(w, "name a provider and send {\"fault\", \"connection\"}", http.StatusBadRequest)
			return
		}
		if o.Fault == "" {
			p.SetScript()
			return
		}
		f, err := lab.ParseFault(o.Fault)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		phase := lab.Always(f)
		if o.Connection != "" {
			phase.Match = lab.OnConnection(o.Connection)
		}
		p.SetScript(phase)
	})
	mux.HandleFunc("GET /providers/{name}/counts", func(w http.ResponseWriter, r *http.Request) {
		p := c.providers[r.PathValue("name")]
		if p == nil {
			http.NotFound(w, r)
			return
		}
		writeJSON(w, p.Counts())
	})
	mux.HandleFunc("POST /turns", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, c.lean.Turns()) })
	return mux
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Control commands an upstream process.
type Control struct {
	url    string
	client *http.Client
}

// NewControl returns a client of the control API at an Addresses.Control.
func NewControl(url string) *Control {
	return &Control{url: url, client: &http.Client{Timeout: 10 * time.Second}}
}

// Fault makes a provider fail from now on: "429:30s", "500", "hang". An empty fault makes it well.
// With a connection only that one fails.
func (c *Control) Fault(ctx context.Context, provider, connection, fault string) error {
	return c.call(ctx, "POST", "/providers/"+provider+"/fault", order{fault, connection}, nil)
}

// Counts returns how many calls of each kind have reached a provider.
func (c *Control) Counts(ctx context.Context, provider string) (counts []lab.Count, err error) {
	err = c.call(ctx, "GET", "/providers/"+provider+"/counts", nil, &counts)
	return counts, err
}

// Turns returns and forgets the lean provider's turns.
func (c *Control) Turns(ctx context.Context) (turns []time.Duration, err error) {
	err = c.call(ctx, "POST", "/turns", nil, &turns)
	return turns, err
}

func (c *Control) call(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, &body)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("the upstream does not answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
