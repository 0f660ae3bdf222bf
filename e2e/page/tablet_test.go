package page

import "testing"

// TestTablet: between a phone and a desk nothing is squeezed: causes can be read, nothing lies over its neighbour or
// beyond the edge, and the figures leave no hole.
func TestTablet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	w.breakThings()
	p := w.signedIn(tablet)
	p.says("#out", "server errors")
	p.says("#providers-table", "needs a person")
	if wide := eval[float64](p, "document.scrollingElement.scrollWidth"); wide > 800 {
		t.Errorf("the page is %v wide", wide)
	}
	if wide := eval[float64](p, "document.querySelector('#providers-table thead th:nth-child(4)').clientWidth"); wide < 110 {
		t.Errorf("the causes have a column %v wide", wide)
	}
	over := eval[[]string](p, `[...document.querySelectorAll('.rows td, .rows th')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML.slice(0, 120))`)
	if len(over) > 0 {
		t.Errorf("over their neighbours: %v", over)
	}
	if n := eval[float64](p, "(() => { const rows = {}; for (const e of document.querySelectorAll('.tile')) rows[e.offsetTop] = (rows[e.offsetTop] || 0) + 1; return new Set(Object.values(rows)).size; })()"); n != 1 {
		t.Error("the figures leave a hole")
	}
	p.shot("tablet")
	p.checkAccess("tablet")
}
