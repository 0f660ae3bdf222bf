package admin

import (
	"net/http"

	"omniroute/resilience"
)

// Status is the answer to GET /admin/v1/status.
type Status struct {
	Version string `json:"version"`
	resilience.Status
	// Cluster is "single": one node by itself.
	Cluster string `json:"cluster"`
	// Panic says that requests are sent to targets that are out, as a last resort.
	Panic bool `json:"panic"`
	// Waiting is how many requests wait for a target to come back.
	Waiting int `json:"waiting"`
}

// Status returns what GET /admin/v1/status answers.
func (a *Admin) Status() Status {
	return Status{Version: a.o.Version, Status: a.engine.Status(), Cluster: "single", Waiting: a.o.Runner.Waiting()}
}

func (a *Admin) status(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, a.Status())
	return nil
}
