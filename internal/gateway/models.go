package gateway

import (
	"encoding/json"
	"net/http"

	"omniroute/internal/dialect"
)

// listedModel is a model as OpenAI's API lists it.
type listedModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// listed returns what clients may ask for by name: combos first, then the models that providers
// list, each once, in the order of the configuration.
func (g *Gateway) listed() []listedModel {
	cfg := g.o.Router().Config()
	out := []listedModel{}
	seen := map[string]bool{}
	add := func(id, owner string) {
		if !seen[id] {
			seen[id] = true
			out = append(out, listedModel{ID: id, Object: "model", OwnedBy: owner})
		}
	}
	for _, c := range cfg.Combos {
		add(c.Name, "omniroute")
	}
	for _, p := range cfg.Providers {
		for _, m := range p.Models {
			add(m.ID, p.ID)
			add(p.ID+"/"+m.ID, p.ID)
		}
	}
	return out
}

func (g *Gateway) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"object": "list", "data": g.listed()})
}

// model describes one model; names with a slash need no escaping.
func (g *Gateway) model(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	for _, m := range g.listed() {
		if m.ID == id {
			writeJSON(w, m)
			return
		}
	}
	to, err := g.o.Router().Resolve("openai", id)
	if err != nil {
		g.fail(w, r, refusal(err))
		return
	}
	owner := "omniroute"
	if ts := to.Plan.Targets; len(ts) > 0 {
		owner = ts[0].Key().Provider
	}
	writeJSON(w, listedModel{ID: id, Object: "model", OwnedBy: owner})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", dialect.ErrorContentType)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
