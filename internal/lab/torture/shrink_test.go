package torture

import "slices"

// shrink leaves out of a broken world what it does not need to break the same law.
func (p *plot) shrink(bad *broken) (*plot, *broken) {
	still := func(q *plot) bool {
		_, b := q.run(false)
		if b != nil && b.law == bad.law {
			p, bad = q, b
			return true
		}
		return false
	}
	for size := len(p.steps) + 1; ; {
		before := size
		for chunk := max(len(p.steps)/2, 1); chunk >= 1; chunk /= 2 {
			for at := 0; at < len(p.steps); {
				q := *p
				q.steps = slices.Delete(slices.Clone(p.steps), at, min(at+chunk, len(p.steps)))
				if !still(&q) {
					at += chunk
				}
			}
		}
		for i := 0; i < len(p.faults); {
			q := *p
			q.faults = slices.Delete(slices.Clone(p.faults), i, i+1)
			if !still(&q) {
				i++
			}
		}
		for i := range p.faults { // one that meets everything always is easier to tell
			q := *p
			q.faults = slices.Clone(p.faults)
			q.faults[i].from, q.faults[i].share = 0, 1
			still(&q)
		}
		if p.nodes > 2 {
			q := *p
			q.nodes = 2
			still(&q)
		}
		if size = len(p.steps) + len(p.faults); size >= before {
			return p, bad
		}
	}
}
