package page

import (
	"strings"
	"testing"
)

// TestKeyboard does without a mouse.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	w.ask("northwind/fault/429:10m", 2)
	p := w.signedIn(desk)
	p.says("#out", "rate limited")
	p.press("\t")
	p.wait("document.activeElement.className === 'skip'")
	p.view("focus")
	p.press("\r")
	p.wait("document.activeElement.id === 'out-title'")
	p.press("\t")
	p.wait("document.activeElement.ariaLabel?.startsWith('Reset: northwind')")
	if outline := eval[string](p, "getComputedStyle(document.activeElement).outlineStyle"); outline != "solid" {
		t.Errorf("the focus is not to be seen: %s", outline)
	}
	label := eval[string](p, "document.activeElement.ariaLabel")
	p.press("\r")
	p.wait("document.getElementById('ask').open && document.activeElement.id === 'ask-yes'")
	p.press("\x1b")
	p.wait("!document.querySelector('dialog[open]') && document.activeElement.ariaLabel === " + quote(label))
	p.key("?")
	p.says("#help", "Legend and keys")
	p.view("legend")
	p.checkAccess("legend")
	p.press("\x1b")
	p.key("o")
	p.wait("document.getElementById('only-out').checked")
	p.says("#providers-count", " of 6 connections")
	p.key("/")
	p.wait("document.activeElement.id === 'filter'")
	p.press("contoso")
	p.says("#providers-none", "Nothing matches")
	p.press("\x1b")
	p.key("r")
	p.wait("document.activeElement.id === 'requests-title'")
	p.key("g")
	p.key("j")
	p.wait("document.activeElement.matches('tr')")
	p.key("j")
	p.key("k")
	p.key("k")
	p.wait("document.activeElement.matches('#out tr')")
	p.key("r")
	p.press("\t\t")
	// Through every stop of the page and round: nothing keeps the focus, and each is to be seen.
	seen := map[string]bool{}
	for range 200 {
		p.press("\t")
		at := eval[string](p, "(() => { const e = document.activeElement; return e === document.body ? '' : e.outerHTML.slice(0, 200) + getComputedStyle(e).outlineStyle + e.checkVisibility(); })()")
		if strings.HasSuffix(at, "false") || at != "" && !strings.Contains(at, "solid") && !strings.Contains(at, "auto") {
			t.Errorf("the focus is not to be seen on %s", at)
		}
		if seen[at] && at == "" {
			break
		}
		seen[at] = true
	}
	if len(seen) < 20 {
		t.Errorf("only %d stops", len(seen))
	}
}
