package page

import (
	"net/url"
	"testing"
)

// TestComboWithoutTarget: what clients lose stands first, with the way to find out why, and goes when it is over.
func TestComboWithoutTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	p := w.signedIn(desk)
	p.says("#headline h1", "All well")
	w.exclude(url.Values{"provider": {"northwind"}, "for": {"1h"}, "reason": {"maintenance"}})
	p.says("#headline h1", "northwind is out")
	w.exclude(url.Values{"provider": {"contoso"}, "for": {"2h"}})
	p.says("#headline h1", "No target left for coding, contoso and northwind are out")
	p.wait("document.title.includes('No target left for coding')")
	p.says("#out tbody tr:first-child", "no target left")
	p.says("#out tbody tr:first-child", "coding")
	p.says("#out tbody tr:first-child", "its clients get errors")
	p.says("#announce", "no target is left for coding")
	p.click("#out button", "Explain: coding")
	p.says("#explain-answer", "A request for coding would find nothing in service now.")
	p.says("#explain-answer", "northwind/alpha/aurora")
	p.wait("document.activeElement.id === 'explain-title'")
	p.shot("combo-out")
	p.checkAccess("a combo without target")
	p.click("#out button", "End exclusion: contoso")
	p.click("#ask button", "End exclusion")
	p.says("#headline h1", "northwind is out")
	p.wait("!document.querySelector('#out').textContent.includes('no target left')")
	p.says("#announce", "coding has a target again")
}
