package route

import (
	"sync/atomic"

	"omniroute/internal/catalog"
	"omniroute/internal/config"
)

// storedModel stands for the model of calls about stored responses, which name none. It is nobody's model, so
// that an answer to them is not taken for one of a model.
const storedModel = "stored-responses"

// Stored returns the route to every connection that may have a stored response, in the order of the
// configuration: those that speak the API which stores them. It reports false where there is none.
func (r *Router) Stored() (*Route, bool) { return r.stored, r.stored != nil }

func (r *Router) compileStored(before turns) (err error) {
	var targets []config.Target
	for _, p := range r.cfg.Providers {
		if _, ok := p.Endpoint(catalog.Responses); ok && len(p.Connections) > 0 {
			targets = append(targets, r.cfg.Target(p, storedModel))
		}
	}
	if len(targets) == 0 {
		return nil
	}
	res := r.cfg.Implicit("stored responses", config.MeansListed, targets...)
	r.stored, err = r.compile(catalog.Responses, res, func(node string) *atomic.Uint64 { return r.turns.keep(node, before) })
	return err
}
