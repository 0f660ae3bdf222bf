package admin

import (
	"errors"
	"net/http"

	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/route"
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
	writeJSON(w, http.StatusOK, Explanation{Route: to.Name, Candidates: route.Explain(to)})
	return nil
}
