package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds every wait for something to appear.
const patience = time.Minute

// shots is where the screenshots are left.
var shots = filepath.Join("..", "..", "bin", "e2e", "page")

// browsers share one process; each tab has a profile of its own.
var browser = sync.OnceValues(func() (context.Context, error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		return nil, exec.ErrNotFound
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(ctx)
	stopBrowser = func() { cancel(); stop() }
	return ctx, chromedp.Do(ctx)
})

var stopBrowser = func() {}

func TestMain(m *testing.M) {
	if err := os.MkdirAll(shots, 0o755); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	stopBrowser()
	if where, err := filepath.Abs(shots); err == nil && code == 0 {
		fmt.Println("screenshots are in", where)
	}
	os.Exit(code)
}

// tab is a page that a person looks at.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	complain []string
	allowed  []string
}

// screen is what a person looks at it with.
type screen struct {
	width, height int64
	scheme        string
}

var (
	desk   = screen{1440, 900, "light"}
	tablet = screen{800, 1000, "light"}
	phone  = screen{390, 844, "light"}
)

// watch reports what the policy forbids as an error of the console, in every page from its start.
const watch = `addEventListener('securitypolicyviolation', (e) => console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sample))`

// open opens a tab with an empty profile. Without a Chromium the test is skipped, except where CI is
// set: there nothing may be left out unseen.
func open(t *testing.T, s screen) *tab {
	t.Helper()
	root, err := browser()
	switch {
	case err == nil:
	case os.Getenv("CI") == "" && strings.Contains(err.Error(), exec.ErrNotFound.Error()):
		t.Skip("there is no chromium: the dashboard is not tried in a browser")
	default:
		t.Fatalf("chromium: %v", err)
	}
	ctx, cancel := chromedp.NewContext(root, chromedp.WithNewBrowserContext())
	ctx, late := context.WithTimeout(ctx, 8*time.Minute)
	p := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		late()
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range p.complain {
			t.Errorf("the browser's console: %s", c)
		}
	})
	p.do(chromedp.EmulateViewport(s.width, s.height))
	p.must(chromedp.Listen(ctx, p.heard))
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	p.must(err)
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
	p.must(err)
	return p
}

// heard keeps every complaint of the browser's.
func (p *tab) heard(ev any) {
	text := ""
	switch e := ev.(type) {
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			text = fmt.Sprintf("%s %s", e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, a := range e.Args {
				text += string(a.Value) + " "
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if text == "" {
		return
	}
	for _, ok := range p.allowed {
		if strings.Contains(text, ok) {
			return
		}
	}
	p.complain = append(p.complain, text)
}

// allow takes complaints with this text for what they are: the test makes them happen.
func (p *tab) allow(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, text)
}

// complaints returns what was complained of so far and forgets it.
func (p *tab) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.complain
	p.complain = nil
	return c
}

func (p *tab) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.must(chromedp.Do(p.ctx, steps...))
}

func (p *tab) visit(url string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(url)); err != nil {
		p.t.Fatalf("visit %s: %v", url, err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, js string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// wait returns when an expression in the page is true, over navigations.
func (p *tab) wait(js string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+js+")"))
		if yes {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.shot("failed-" + strings.ReplaceAll(p.t.Name(), "/", "-"))
			p.t.Fatalf("%s does not become true (%v)\nthe page says:\n%s", js, err, eval[string](p, "document.body.innerText"))
		}
	}
}

// says waits until an element has a text.
func (p *tab) says(selector, text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("[...document.querySelectorAll(%s)].some((e) => e.checkVisibility() && e.textContent.includes(%s))", quote(selector), quote(text)))
}

// click clicks with the mouse on the first visible element that has the text, or the label.
func (p *tab) click(selector, text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%s)].find((e) => e.checkVisibility() && (e.textContent.includes(%[2]s) || (e.ariaLabel || '').includes(%[2]s)))", quote(selector), quote(text))
	place := "(() => { const e = " + find + "; if (!e) return [-1, -1]; e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
	p.wait(find)
	// What comes in just now may move it, so that it has to stay where it is for a moment first.
	var at [2]float64
	for was := [2]float64{-1, -1}; at != was || at[0] < 0; {
		was = at
		eval[bool](p, "(window.framed = 0, requestAnimationFrame(() => requestAnimationFrame(() => window.framed = 1)), true)")
		p.wait("window.framed")
		at = eval[[2]float64](p, place)
	}
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// press sends keys to what has the focus.
func (p *tab) press(keys string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.KeyEvent(keys)); err != nil {
		p.t.Fatalf("press %q: %v", keys, err)
	}
}

// shot leaves a picture of the whole page.
func (p *tab) shot(name string) {
	p.t.Helper()
	eval[bool](p, "(scrollTo({top: 0, behavior: 'instant'}), true)")
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(shots, name+".png"), png, 0o644)
	}
	p.must(err)
}

// view leaves a picture of what is on the screen.
func (p *tab) view(name string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(shots, name+".png"), png, 0o644)
	}
	p.must(err)
}

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
