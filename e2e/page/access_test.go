package page

import (
	_ "embed"
)

//go:embed access.js
var access string

// checkAccess looks for what keeps people out: things without a name, doubled ids, headings that skip a
// level, tables without heads, and text that is too pale on what is behind it.
func (p *tab) checkAccess(where string) {
	p.t.Helper()
	for _, problem := range eval[[]string](p, access) {
		p.t.Errorf("%s: %s", where, problem)
	}
}
