package admin

import (
	"net/http"
	"time"

	"omniroute/internal/route"
	"omniroute/resilience"
)

// Status is the answer to GET /admin/v1/status.
type Status struct {
	Version string `json:"version"`
	resilience.Status
	// Cluster is "single" for one node by itself, "ok" where the nodes share what they know, and
	// "isolated" while the shared store cannot be reached.
	Cluster string `json:"cluster"`
	// Nodes are those that were seen within a minute, at most 100, and NodeCount is how many there are.
	Nodes     []resilience.NodeStatus `json:"nodes,omitempty"`
	NodeCount int                     `json:"node_count,omitempty"`
	// Panic says that requests are sent to targets that are out, as a last resort.
	Panic bool `json:"panic"`
	// Waiting is how many requests wait for a target to come back.
	Waiting int `json:"waiting"`
	// Concurrency is how many calls connections have and may have, Headroom what upstreams have left
	// of their limits.
	Concurrency []route.Occupation `json:"concurrency"`
	Headroom    []route.Bucket     `json:"headroom"`
}

// Status returns what GET /admin/v1/status answers.
func (a *Admin) Status() Status {
	c, router := a.engine.Cluster(), a.o.Router()
	return Status{Version: a.o.Version, Status: a.engine.Status(), Cluster: c.State, Nodes: c.Nodes, NodeCount: c.Count, Waiting: a.o.Runner.Waiting(),
		Panic: router.Panic(), Concurrency: router.Occupations(), Headroom: router.Headroom(time.Now())}
}

func (a *Admin) status(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, a.Status())
	return nil
}
