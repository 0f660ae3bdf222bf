package route

import (
	"cmp"
	"slices"
	"time"

	"omniroute/internal/catalog"
	"omniroute/internal/headroom"
	"omniroute/resilience"
)

// Occupation is how many calls a connection has and may have.
type Occupation struct {
	Provider   string `json:"provider"`
	Connection string `json:"connection"`
	// Running is how many calls run, MaxConcurrent how many may at once (0: any number), Queued how
	// many requests wait in line for a place.
	Running       int `json:"running"`
	MaxConcurrent int `json:"max_concurrent"`
	Queued        int `json:"queued"`
}

// Occupations returns those of the connections that are bounded or in use, in the configuration's
// order.
func (r *Router) Occupations() []Occupation {
	out := []Occupation{}
	for _, p := range r.cfg.Providers {
		for _, c := range p.Connections {
			places := r.places.Of(resilience.Key{Provider: p.ID, Connection: c.ID})
			o := Occupation{Provider: p.ID, Connection: c.ID, Running: places.Used(), MaxConcurrent: places.Most(), Queued: places.Waiting()}
			if o.Running > 0 || o.MaxConcurrent > 0 {
				out = append(out, o)
			}
		}
	}
	return out
}

// Bucket is what an upstream has left of one of its limits.
type Bucket struct {
	Provider   string `json:"provider"`
	Connection string `json:"connection"`
	// Model is empty for a limit of the whole account.
	Model  string `json:"model,omitempty"`
	Bucket string `json:"bucket"`
	// Limit is its size, 0 where the upstream does not say, Remaining what is left, less what is on
	// its way there.
	Limit     int64 `json:"limit"`
	Remaining int64 `json:"remaining"`
	// ResetAt is when it will be full again, null where that is not known.
	ResetAt resilience.Timestamp `json:"reset_at"`
	// Learned says that the upstream has not told of it: it was learned from refusals.
	Learned bool `json:"learned,omitempty"`
}

// Headroom returns every fresh figure of what upstreams have left, ordered by name. It changes
// nothing.
func (r *Router) Headroom(now time.Time) []Bucket {
	l := r.meters
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Bucket{}
	note := func(k resilience.Key, figures []headroom.Figure) {
		for _, f := range figures {
			out = append(out, Bucket{Provider: k.Provider, Connection: k.Connection, Model: k.Model, Bucket: f.Bucket,
				Limit: f.Limit, Remaining: f.Remaining, ResetAt: resilience.Timestamp{Time: f.Full}, Learned: f.Guess})
		}
	}
	for k, a := range l.accounts {
		note(k, a.Figures(now))
	}
	for k, m := range l.written {
		note(k, m.Figures(now))
	}
	for k, m := range l.others.new {
		note(k, m.Figures(now))
	}
	for k, m := range l.others.old {
		if l.others.new[k] == nil {
			note(k, m.Figures(now))
		}
	}
	slices.SortFunc(out, func(a, b Bucket) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Bucket, b.Bucket))
	})
	return out
}

// Panic reports whether requests for a combo would be sent to a target that is out, as a last
// resort. It changes nothing.
func (r *Router) Panic() bool {
	var room []resilience.Standing
	for _, c := range r.cfg.Combos {
		if !c.LastResort {
			continue
		}
		route := r.fixed[asked{catalog.OpenAI, c.Name}]
		var gates []*resilience.Target
		for i := range route.Plan.Targets {
			gates = append(gates, route.Plan.Targets[i].Target)
		}
		room = r.engine.Standings(gates, false, room)
		desperate := false
		for i := range room {
			s := &room[i]
			if !s.Out || s.Held || s.RetryAfter > 0 && s.RetryAfter <= route.Plan.Limits.MaxWait {
				desperate = false
				break
			}
			desperate = desperate || s.RetryAfter > 0 && s.Layer != resilience.LayerOperator
		}
		if desperate {
			return true
		}
	}
	return false
}
