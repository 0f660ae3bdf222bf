package page

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var reload = chromedp.Reload()

// dark switches to the dark theme, as the system does in the evening.
func (p *tab) dark() {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
	p.must(err)
	p.wait("matchMedia('(prefers-color-scheme: dark)').matches")
}

// key presses a shortcut as a keyboard does: what the page takes for itself types nothing.
func (p *tab) key(k string) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		q := input.DispatchKeyEventParams{Type: kind, Key: k}
		if kind == input.DispatchKeyEventTypeKeyDown {
			q.Text = k
		}
		_, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, q)
		p.must(err)
	}
}

// selectOption chooses from a list.
func selectOption(selector, value string) chromedp.Action[chromedp.Void] {
	js := fmt.Sprintf("(() => { const s = document.querySelector(%s); s.value = %s; s.dispatchEvent(new Event('input')); return true; })()", quote(selector), quote(value))
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool](js)(ctx, t)
		return err
	})
}

// obeyPolicy lets the page's policy forbid eval, as for its own scripts.
func obeyPolicy(q *runtime.EvaluateParams) {
	no := false
	q.AllowUnsafeEvalBlockedByCSP = &no
}

// evalAwait returns what a promise comes to.
func evalAwait(p *tab, js string) bool {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Promise.resolve("+js+")", chromedp.EvalAwaitPromise, obeyPolicy))
	if err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
	return v
}
