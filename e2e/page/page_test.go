package page

import (
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"omniroute/resilience"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	p := open(t, desk)
	p.allow("status of 401")
	p.visit(w.URL + "/dashboard")
	p.says("h1", "OmniRoute")
	p.view("sign-in")
	p.press("wrong\r")
	p.says("[role=alert]", "not the admin token")
	p.checkAccess("sign-in")
	p.wait("document.activeElement.id === 'token'")
	p.press(token + "\r")
	p.says("h1", "All well")
	if c := eval[string](p, "document.cookie"); c != "" {
		t.Errorf("scripts can read the cookie: %s", c)
	}
	if html := eval[string](p, "document.documentElement.outerHTML"); strings.Contains(html, token) {
		t.Error("the page holds the admin token")
	}
	p.do(reload)
	p.says("h1", "All well")
	p.click("button", "Sign out")
	p.says("label", "Admin token")
	p.visit(w.URL + "/dashboard")
	p.says("label", "Admin token")
}

// TestEveryPanelIsLive breaks things while a page is open, and looks for each in its place.
func TestEveryPanelIsLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	p := w.signedIn(desk)
	p.says("#out-none", "Nothing.")
	p.says("#requests-none", "No request yet")
	p.says("#headroom-none", "No upstream has told")
	p.shot("empty")
	p.checkAccess("empty")
	w.breakThings()
	w.exclude(url.Values{"provider": {"fabrikam"}, "connection": {"spare"}, "for": {"1h"}, "reason": {"billing dispute"}})

	p.says("#headline h1", "out")
	p.says("#headline h1", "1 connection needs a person")
	p.says("#headline-more", "Next back in")
	p.wait("document.title.startsWith('(')")
	p.wait("document.getElementById('icon').href.endsWith('/out.svg')")
	for what, why := range map[string]string{
		"breaker open" + "fabrikam":                   "server errors",
		"needs a person" + "tailspin/old-key":         "key refused",
		"model locked" + "contoso/gamma/fault/404":    "model does not exist",
		"excluded by an operatorfabrikam/spare":       "billing dispute",
		"cooling" + "northwind/" + w.cooling().string: "rate limited",
	} {
		p.says("#out tbody tr", what)
		p.says("#out tbody tr", why)
	}
	p.says("#providers-table .group", "open")
	p.says("#providers-table tr", "needs a person")
	p.wait("document.querySelectorAll('#providers-table .strip rect.bad').length > 0")
	p.wait("document.querySelector('#providers-table .strip').getAttribute('aria-label').length > 10")
	p.says("#requests-table tr", "fault/404")
	p.wait("document.querySelectorAll('#requests-table .waterfall .bad').length > 0")
	p.wait("document.querySelectorAll('#requests-table .waterfall .ok .content').length > 0")
	p.says(".tile", "Failed for clients")
	p.wait("[...document.querySelectorAll('.tile')].some((e) => e.innerText.startsWith('Requests') && !e.innerText.includes('\\n0\\n'))")
	p.wait("document.getElementById('chart-traffic').ariaLabel.includes('failed for clients')")
	p.wait("document.querySelectorAll('.chart canvas').length === 2")
	p.says("#facts", "saved")
	p.says("#headroom-list", "left")
	p.says("#places-list", "contoso/gamma0 of 4 in use")
	p.wait("document.getElementById('announce').textContent.includes('fabrikam') || document.getElementById('announce').textContent.includes('changes')")

	// A countdown runs.
	count := "[...document.querySelectorAll('#out .count')].map((e) => e.textContent).find((s) => s.startsWith('in '))"
	before := eval[string](p, count)
	p.wait(count + " !== " + quote(before))

	p.shot("out-light")
	p.checkAccess("out, light")
	p.dark()
	p.shot("out-dark")
	p.checkAccess("out, dark")
}

// coolingConnection is the connection of northwind that was rate limited: which one is the router's choice.
type coolingConnection struct{ string }

func (w *world) cooling() coolingConnection {
	w.t.Helper()
	for _, p := range w.status().Providers {
		for _, c := range p.Connections {
			if p.ID == "northwind" && c.State == resilience.Cooling {
				return coolingConnection{c.ID}
			}
		}
	}
	w.t.Fatal("no connection of northwind cools")
	return coolingConnection{}
}

// TestStory opens a request by a click, by its id, and by its address.
func TestStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	p := w.signedIn(desk)
	id := w.ask("northwind/fault/500", 1)
	p.click("#requests-table tr", "fault/500")
	p.says("#story h2", "Request "+id)
	p.says("#story", "server errors")
	p.says("#story", "failed 500")
	p.view("story")
	p.checkAccess("story")
	p.press("\x1b")
	p.wait("!document.querySelector('dialog[open]')")
	p.click("#find-id", "")
	p.allow("status of 404")
	p.press("req_none\r")
	p.says("#story", "no request")
	p.press("\x1b")
	p.wait("!document.querySelector('dialog[open]')")
	p.visit(w.URL + "/dashboard#request/" + id)
	p.says("#story h2", "Request "+id)
	p.says("#story", "server errors")
}

func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	p := w.signedIn(desk)
	p.wait("document.querySelectorAll('#names option').length >= 4")
	p.key("e")
	p.press("coding\r")
	p.says("#explain-answer", "would go to northwind/")
	w.exclude(url.Values{"provider": {"northwind"}, "for": {"1h"}})
	p.click("#explain-form button", "Explain")
	p.says("#explain-answer", "would go to contoso/gamma/comet")
	p.allow("status of 404")
	p.click("#explain-model", "")
	eval[bool](p, "(document.getElementById('explain-model').select(), true)")
	p.press("nothing-like-it\r")
	p.says("#explain-answer [role=alert]", "nothing-like-it")
}

// TestResetAndExclude acts by clicks, and asks the admin API whether it is so.
func TestResetAndExclude(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	p := w.signedIn(desk)
	operator := func() int { return len(w.status().Operator) }

	p.click("#providers-table button", "Exclude: contoso/gamma")
	p.says("#ask h2", "Exclude contoso/gamma?")
	p.view("exclude")
	p.checkAccess("exclude")
	p.click("#ask button", "Cancel")
	p.wait("!document.querySelector('dialog[open]')")
	if operator() != 0 {
		t.Error("excluded without a yes")
	}
	p.click("#providers-table button", "Exclude: contoso/gamma")
	p.wait("document.activeElement.id === 'ask-for'")
	p.press("\t")
	p.press("new contract")
	p.click("#ask button", "Exclude")
	p.says("#toast", "contoso/gamma is out for 10 minutes")
	p.says("#out", "new contract")
	if s := w.status().Operator; len(s) != 1 || s[0].Reason != "new contract" || s[0].Until.IsZero() {
		t.Errorf("%+v", s)
	}
	p.click("#toast button", "Undo")
	p.says("#toast", "has ended")
	p.says("#out-none", "Nothing.")
	if operator() != 0 {
		t.Error("Undo has not ended it")
	}
	w.exclude(url.Values{"provider": {"contoso"}, "reason": {"by another operator"}})
	p.click("#out button", "End exclusion: contoso")
	p.click("#ask button", "End exclusion")
	p.says("#out-none", "Nothing.")
	if operator() != 0 {
		t.Error("End exclusion has not ended it")
	}

	w.ask("northwind/fault/429:10m", 2)
	p.click("#out button", "Reset: northwind")
	p.says("#ask h2", "Reset northwind/")
	p.click("#ask button", "Reset")
	p.says("#toast", "Back in service: 1 connection")

	// What the gateway refuses is told in the dialog, and the page goes on.
	p.allow("status of 401")
	p.click("#providers-table button", "Exclude: contoso/gamma")
	w.WriteConfig(strings.ReplaceAll(w.config, token, "another-token"))
	w.Signal(syscall.SIGHUP)
	for code := 200; code == 200; code, _ = w.send("GET", "/admin/v1/status", "") {
	}
	p.click("#ask button", "Exclude")
	p.says("#ask [role=alert]", "not signed in")
	p.says("#lost", "You are signed out")
}

// TestNarrow: on a phone nothing lies beyond the edge, and all that can be done can be done.
func TestNarrow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	w.breakThings()
	p := w.signedIn(phone)
	p.says("#out", "server errors")
	if wide := eval[float64](p, "document.scrollingElement.scrollWidth"); wide > 390 {
		t.Errorf("the page is %v wide", wide)
	}
	small := eval[[]string](p, `[...document.querySelectorAll('button, select, input:not([type=checkbox])')].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML.slice(0, 80))`)
	if len(small) > 0 {
		t.Errorf("too small for a finger: %v", small)
	}
	p.shot("narrow-light")
	p.checkAccess("narrow")
	p.click("#providers-table button", "Exclude: contoso/gamma")
	p.says("#ask h2", "Exclude contoso/gamma?")
	p.view("narrow-exclude")
	p.click("#ask button", "Exclude")
	p.says("#toast", "is out")
	p.dark()
	p.shot("narrow-dark")
	p.checkAccess("narrow, dark")
}

// TestTwoHundredConnections: the page stays usable, and a change moves neither the focus nor what is read.
func TestTwoHundredConnections(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("admin_token: " + token + "\nstore: \"memory:\"\nproviders:\n")
	for i := range 20 {
		fmt.Fprintf(&b, "  provider-%02d:\n    base_url: %%[1]q\n    dialect: openai\n    models: [m]\n    connections:\n", i)
		for j := range 10 {
			fmt.Fprintf(&b, "      - {id: key-%02d%d, api_key: secret-%d-%d}\n", i, j, i, j)
		}
	}
	w := newWorld(t, b.String())
	p := w.signedIn(desk)
	p.says("#providers-count", "200 connections")
	kinds := []string{"auth", "quota_exhausted"}
	for i := range 10 {
		w.exclude(url.Values{"provider": {"provider-07"}, "connection": {fmt.Sprintf("key-07%d", i)}, "kind": {kinds[i%2]}})
	}
	w.exclude(url.Values{"provider": {"provider-12"}, "for": {"1h"}, "reason": {"maintenance"}})
	p.click("#out-all", "Show all 11")
	p.says("#out", "maintenance")
	p.click("#out-all", "Show the gravest only")
	p.view("many")
	p.key("o")
	p.says("#providers-count", "20 of 200 connections")
	p.key("/")
	p.press("quota")
	p.says("#providers-table", "quota spent")
	p.says("#providers-count", " of 200 connections")
	p.do(selectOption("#sort", "worst"))
	p.press("\x1b")
	p.wait("document.querySelector('#providers-table tbody tr').textContent.includes('provider-07')")

	// Everything is wanted again; the focus goes to a button far below.
	eval[bool](p, "(() => { const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input')); document.getElementById('only-out').click(); return true; })()")
	p.wait("document.getElementById('providers-count').textContent === '200 connections'")
	eval[bool](p, "(() => { const b = document.querySelector('[aria-label=\"Exclude: provider-15/key-155\"]'); b.scrollIntoView({block: 'center', behavior: 'instant'}); b.focus(); return true; })()")
	top := eval[float64](p, "document.activeElement.getBoundingClientRect().top")
	w.exclude(url.Values{"provider": {"provider-18"}, "connection": {"key-183"}, "for": {"1h"}})
	p.wait("[...document.querySelectorAll('#providers-table tr')].some((e) => e.textContent.includes('key-183') && e.textContent.includes('excluded'))")
	if label := eval[string](p, "document.activeElement.ariaLabel"); label != "Exclude: provider-15/key-155" {
		t.Errorf("the focus has moved to %q", label)
	}
	if now := eval[float64](p, "document.activeElement.getBoundingClientRect().top"); now < 0 || now > 900 {
		t.Errorf("what has the focus was scrolled from %v to %v", top, now)
	}
	for i := range 20 {
		w.exclude(url.Values{"provider": {fmt.Sprintf("provider-%02d", i)}, "for": {"2h"}, "reason": {"everything"}})
	}
	p.says("#headline h1", "All 20 providers are out")
	p.says("#out-all", "Show all")
	p.shot("many-out")
}

// TestRestart: a gateway that is gone is told of, what is shown claims nothing, and it comes back by
// itself, signed in.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	p := w.signedIn(desk)
	w.ask("northwind/fault/429:10m", 2)
	p.says("#out .count", "in ")
	p.allow("net::ERR_") // whatever a browser calls a server that is gone
	p.allow("status of 503")
	w.Kill()
	p.says("#lost", "Showing the data of ")
	p.says("#link", "connection lost")
	p.says("#out .count", "was to be ")
	still := eval[string](p, "document.querySelector('#out .count').textContent + document.getElementById('headline-more').textContent")
	p.click("#providers-table button", "Exclude: contoso/gamma")
	p.click("#ask button", "Exclude")
	p.says("#ask [role=alert]", "does not answer")
	p.press("\x1b")
	p.view("lost")
	p.checkAccess("lost")
	if now := eval[string](p, "document.querySelector('#out .count').textContent + document.getElementById('headline-more').textContent"); now != still {
		t.Errorf("it went on to count: %q, then %q", still, now)
	}
	w.Start()
	p.wait("document.body.dataset.link === 'live' && document.getElementById('lost').hidden")
	p.says("#out .count", "in ") // it was in the store
	p.says("#requests-none", "No request yet")
	w.ask("contoso/comet", 1)
	p.says("#requests-table", "contoso/comet")

	// A gateway that is stopped says so at once, and is waited for in the same way.
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	p.says("#lost", "Showing the data of ")
	w.Start()
	p.wait("document.body.dataset.link === 'live'")
}

// TestHostileText: what clients, upstreams and other operators wrote is text, whatever it looks like.
func TestHostileText(t *testing.T) {
	t.Parallel()
	const evil = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`
	w := newWorld(t, usual)
	p := w.signedIn(desk)
	w.ask(evil, 1)
	id := w.ask("northwind/"+evil, 1)
	w.ask("northwind/fault/500", 1)
	w.exclude(url.Values{"provider": {"contoso"}, "model": {evil}, "reason": {evil}})
	p.says("#out", evil)
	p.says("#requests-table", evil)
	p.visit(w.URL + "/dashboard#request/" + id)
	p.says("#story", evil)
	p.press("\x1b")
	p.wait("!document.querySelector('dialog[open]')")
	p.key("e")
	p.allow("status of 404")
	p.press(evil + "\r")
	p.says("#explain-answer", "<img src=x onerror=")
	if n := eval[int](p, "document.querySelectorAll('img, script:not([src]), iframe').length + (window.pwned ? 1000 : 0)"); n != 0 {
		t.Errorf("%d elements came from text", n)
	}
}

// TestPolicy: the browser itself refuses what the page must never do.
func TestPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	p := w.signedIn(desk)
	for name, js := range map[string]string{
		"inline script":   `(() => { const s = document.createElement('script'); try { s.textContent = 'window.pwned = 1'; document.body.append(s); } catch {} return !window.pwned; })()`,
		"markup":          `(() => { try { document.body.insertAdjacentHTML('beforeend', '<b id=pwned></b>'); } catch {} return !document.getElementById('pwned'); })()`,
		"eval":            `(() => { try { new Function('window.pwned = 1')(); } catch {} return !window.pwned; })()`,
		"inline style":    `(() => { const d = document.createElement('div'); d.setAttribute('style', 'position: fixed'); document.body.append(d); return getComputedStyle(d).position !== 'fixed'; })()`,
		"another host":    `fetch('http://127.0.0.1:1/').then(() => false, () => true)`,
		"another picture": `new Promise((done) => { const i = new Image(); i.onload = () => done(false); i.onerror = () => done(true); i.src = 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'; })`,
	} {
		if !evalAwait(p, js) {
			t.Errorf("%s is allowed", name)
		}
		if c := p.complaints(); len(c) == 0 {
			t.Errorf("%s: the tests do not notice what the policy forbids", name)
		}
	}
}
