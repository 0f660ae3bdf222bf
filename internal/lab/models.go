package lab

import (
	"net/http"
	"strconv"
	"time"
)

// serveModels lists the models, or one of them.
func (p *Provider) serveModels(w http.ResponseWriter, id string, now time.Time) {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		OwnedBy     string `json:"owned_by"`
		Description string `json:"description,omitempty"`
	}
	var all []model
	for _, m := range p.opt.Models {
		all = append(all, model{ID: m, Object: "model", Created: 1735689600, OwnedBy: p.opt.Name})
	}
	for _, f := range Faults() {
		name := f.Model()
		if p.opt.Faulty {
			name = f.Name
		}
		all = append(all, model{ID: name, Object: "model", Created: 1735689600, OwnedBy: "lab", Description: f.Description})
	}
	var answer any = map[string]any{"object": "list", "data": all}
	if id != "" {
		answer = nil
		for _, m := range all {
			if m.ID == id {
				answer = m
			}
		}
		if answer == nil && p.opt.Models == nil {
			answer = model{ID: id, Object: "model", Created: 1735689600, OwnedBy: p.opt.Name}
		}
		if answer == nil {
			errModelNotFound(id, "").write(w, now)
			return
		}
	}
	body := marshal(answer)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}
