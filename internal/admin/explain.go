package admin

import (
	"errors"
	"net/http"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// Explanation is the answer to POST /admin/v1/explain.
type Explanation struct {
	// Route is the plan that the model's name stands for.
	Route      string            `json:"route"`
	Candidates []route.Candidate `json:"candidates"`
}

func (a *Admin) explain(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Model string `json:"model"`
	}
	const example = `{"model": "coding"}`
	if err := read(w, r, &q, "model", example); err != nil {
		return err
	}
	if q.Model == "" {
		return invalid("model is missing; send an object such as %s", example)
	}
	to, err := a.o.Router().Resolve(catalog.OpenAI, q.Model)
	var missing *config.NotFoundError
	if errors.As(err, &missing) {
		return refuse(http.StatusNotFound, "not_found", "%v", missing)
	}
	if err != nil {
		return err
	}
	candidates := route.Explain(to, route.Asked{}, failover.Ask{}, time.Now())
	nameOneModel(candidates, a.engine.Status())
	writeJSON(w, http.StatusOK, Explanation{Route: to.Name, Candidates: candidates})
	return nil
}

// nameOneModel says of candidates whose connection cools down for some models alone that the others
// on it are well.
func nameOneModel(candidates []route.Candidate, st resilience.Status) {
	alone := map[resilience.Key]bool{}
	for _, p := range st.Providers {
		for _, c := range p.Connections {
			for _, model := range c.Models {
				alone[resilience.Key{Provider: p.ID, Connection: c.ID, Model: model}] = true
			}
		}
	}
	for i := range candidates {
		c := &candidates[i]
		if c.Layer != nil && *c.Layer == resilience.LayerConnection && alone[resilience.Key{Provider: c.Provider, Connection: c.Connection, Model: c.Model}] {
			c.Reason = "only this model is out: " + c.Reason
		}
	}
}
