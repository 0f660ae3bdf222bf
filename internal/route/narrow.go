package route

import "omniroute/internal/config"

// Narrowed says by place which of the plan's targets the callers of a client key may not use; nil when
// they may use all. ok is false when nothing is left for them: then there is no such model for them.
// named says that they may have what they asked for under the name that they gave; else a combo is
// not theirs, and of other names each target has to be one of their models.
func (r *Route) Narrowed(c *config.Client, named bool) (barred []bool, ok bool) {
	if !c.Restricted() {
		return nil, true
	}
	if r.Combo && !named {
		return nil, false
	}
	barred = make([]bool, len(r.Plan.Targets))
	left := len(barred)
	for i := range barred {
		k := r.Plan.Targets[i].Key()
		if barred[i] = !c.MayUse(k.Provider+"/"+k.Model, named); barred[i] {
			left--
		}
	}
	// A plan without any target is not the key's affair.
	return barred, left > 0 || len(barred) == 0 && named
}
