package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"omniroute/internal/config"
	"omniroute/internal/dialect"
)

// listed is a model that clients may ask for, and who has it.
type listed struct{ id, owner string }

// listed returns what the callers of a client key may ask for by name: combos first, then the models
// that providers list, each once, in the order of the configuration.
func (g *Gateway) listed(client *config.Client) []listed {
	cfg := g.o.Router().Config()
	out := []listed{}
	seen := map[string]bool{}
	add := func(id, owner string) {
		if !seen[id] {
			seen[id] = true
			out = append(out, listed{id, owner})
		}
	}
	for _, c := range cfg.Combos {
		usable := func(t config.Target) bool { return client.MayUse(t.Name(), true) }
		if client.MayAsk(c.Name) && (len(c.Targets) == 0 || slices.ContainsFunc(c.Targets, usable)) {
			add(c.Name, "omniroute")
		}
	}
	for _, p := range cfg.Providers {
		for _, m := range p.Models {
			full := p.ID + "/" + m.ID
			if client.MayUse(full, client.MayAsk(m.ID)) {
				add(m.ID, p.ID)
			}
			if client.MayUse(full, false) {
				add(full, p.ID)
			}
		}
	}
	return out
}

// openaiModel, anthropicModel and geminiModel are a model as the three APIs list it.
type openaiModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

type geminiModel struct {
	Name        string   `json:"name"`
	BaseModelID string   `json:"baseModelId"`
	Version     string   `json:"version"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods"`
}

// describe puts a model into the shape of a dialect's list. When it was made nobody knows.
func describe(d dialect.Dialect, m listed) any {
	switch d {
	case messages:
		return anthropicModel{"model", m.id, m.id, "1970-01-01T00:00:00Z"}
	case google:
		return geminiModel{"models/" + m.id, m.id, "", m.id, []string{"generateContent", "streamGenerateContent", "countTokens"}}
	}
	return openaiModel{ID: m.id, Object: "model", OwnedBy: m.owner}
}

// models lists what there is, in the caller's shape.
func (g *Gateway) models(w http.ResponseWriter, r *http.Request) {
	d := dialectOf(r)
	all := g.listed(g.client(r))
	if d == messages {
		writeJSON(w, page(all, r))
		return
	}
	list := make([]any, 0, len(all))
	for _, m := range all {
		list = append(list, describe(d, m))
	}
	if d == google {
		writeJSON(w, map[string]any{"models": list})
		return
	}
	writeJSON(w, map[string]any{"object": "list", "data": list})
}

// page returns the part of the list that an Anthropic client asks for.
func page(all []listed, r *http.Request) any {
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > 1000 {
		limit = 20 // the API's own default
	}
	if after := q.Get("after_id"); after != "" {
		if i := slices.IndexFunc(all, func(m listed) bool { return m.id == after }); i >= 0 {
			all = all[i+1:]
		}
	}
	out := struct {
		Data    []any   `json:"data"`
		HasMore bool    `json:"has_more"`
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
	}{Data: []any{}, HasMore: len(all) > limit}
	for _, m := range all[:min(limit, len(all))] {
		out.Data = append(out.Data, describe(messages, m))
		if out.FirstID == nil {
			out.FirstID = &m.id
		}
		out.LastID = &m.id
	}
	return out
}

// model describes one model; names with a slash need no escaping.
func (g *Gateway) model(w http.ResponseWriter, r *http.Request) {
	d, id := dialectOf(r), r.PathValue("id")
	if id == "" {
		g.models(w, r) // a list with a slash at its end
		return
	}
	if d == google {
		id = strings.TrimPrefix(id, "models/")
	}
	for _, m := range g.listed(g.client(r)) {
		if m.id == id {
			writeJSON(w, describe(d, m))
			return
		}
	}
	to, _, err := g.resolve(r, d, id, id)
	if err != nil {
		g.fail(w, r, refusal(err))
		return
	}
	owner := "omniroute"
	if ts := to.Plan.Targets; len(ts) > 0 {
		owner = ts[0].Key().Provider
	}
	writeJSON(w, describe(d, listed{id, owner}))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", dialect.ErrorContentType)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
