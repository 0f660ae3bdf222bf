package gateway_test

import (
	"strings"
	"testing"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

// TestOneStatusPerCause has what both providers do, and the one status that the client gets for it
// (law X1), with when to come back (law X2).
func TestOneStatusPerCause(t *testing.T) {
	t.Parallel()
	unknown := lab.ModelNotFound()
	limited := lab.RateLimited(lab.RetryAfter(30 * time.Second))
	for name, c := range map[string]struct {
		p, q       lab.Fault
		status     int
		code       string
		in         string // in the body
		retryAfter string
		more       string // x-should-retry
	}{
		"limited":               {limited, limited, 429, "all_targets_unavailable", "rate limited", "30", ""},
		"limited for long":      {lab.RateLimited(lab.RetryAfter(8 * time.Minute)), lab.RateLimited(lab.RetryAfter(9 * time.Minute)), 429, "all_targets_unavailable", `"retry_after_ms":480000`, "60", "false"},
		"out of credit":         {lab.QuotaExhausted(), lab.QuotaExhausted(), 503, "all_targets_unavailable", `"kind":"billing"`, "60", ""},
		"keys refused":          {lab.Unauthorized(), lab.Unauthorized(), 503, "all_targets_unavailable", `"kind":"auth"`, "", ""},
		"access denied":         {lab.Forbidden(), lab.Forbidden(), 503, "all_targets_unavailable", `"kind":"permission"`, "60", "false"},
		"unpaid":                {lab.PaymentRequired(), lab.PaymentRequired(), 503, "all_targets_unavailable", `"kind":"billing"`, "", ""},
		"broken":                {lab.ServerError(), lab.ServerError(), 503, "all_targets_unavailable", "6 attempts failed, 0 targets are out", "", ""},
		"overloaded":            {lab.Overloaded(), lab.Overloaded(), 503, "all_targets_unavailable", "", "", ""},
		"limited and broken":    {limited, lab.ServerError(), 503, "all_targets_unavailable", "", "", ""},
		"silent":                {lab.Hang(), lab.Hang(), 504, "upstream_error", "in time", "", ""},
		"empty":                 {lab.NoContent(), lab.NoContent(), 502, "upstream_error", "empty_response", "", ""},
		"pages":                 {lab.HTML200(), lab.HTML200(), 502, "upstream_error", "usable", "", ""},
		"unknown model":         {unknown, unknown, 404, "model_not_found", "", "60", "false"},
		"a request at fault":    {lab.Invalid(), lab.Fault{}, 400, "invalid_request", "between 0 and 2", "-", ""},
		"too long for all":      {lab.ContextLength(), lab.ContextLength(), 400, "context_length_exceeded", "maximum context length", "-", ""},
		"against a policy":      {lab.ContentPolicy(), lab.ContentPolicy(), 400, "content_policy_violation", "content policy", "-", ""},
		"one of them would do":  {lab.Unauthorized(), lab.Fault{}, 200, "", "", "-", ""},
		"unknown to one of two": {unknown, lab.Fault{}, 200, "", "", "-", ""},
	} {
		t.Run(name, func(t *testing.T) {
			world(t, func(t *testing.T, w *gatewaytest.World) {
				w.Providers["p"].SetFault(c.p)
				w.Providers["q"].SetFault(c.q)
				a := w.Chat(t.Context(), "c", false)
				if a.Status != c.status || a.Error != c.code || !strings.Contains(a.Body, c.in) || a.Header.Get("X-Should-Retry") != c.more {
					t.Errorf("%d %s %v\n%s", a.Status, a.Error, a.Header, a.Body)
				}
				switch got := a.Header.Get("Retry-After"); {
				case c.retryAfter == "-" && got != "", c.retryAfter == "" && got == "", len(c.retryAfter) > 1 && got != c.retryAfter:
					t.Errorf("Retry-After %q, want %q", got, c.retryAfter)
				}
				if strings.Contains(a.Body, "secret") {
					t.Errorf("a key in %s", a.Body)
				}
			})
		})
	}
}

// TestAllOutIsSaidAtOnce: nobody waits for what comes back too late (law X3).
func TestAllOutIsSaidAtOnce(t *testing.T) {
	world(t, func(t *testing.T, w *gatewaytest.World) {
		for _, p := range w.Providers {
			p.SetFault(lab.RateLimited(lab.RetryAfter(time.Minute)))
		}
		w.Chat(t.Context(), "c", true)
		calls := w.Providers["p"].Total() + w.Providers["q"].Total()
		start := time.Now()
		a := w.Chat(t.Context(), "c", true)
		if took := time.Since(start); took > 50*time.Millisecond || a.Status != 429 || strings.Count(a.Body, `"layer":"connection"`) != 3 {
			t.Errorf("after %v: %d %s", took, a.Status, a.Body)
		}
		if n := w.Providers["p"].Total() + w.Providers["q"].Total(); n != calls {
			t.Errorf("%d calls went out", n-calls)
		}
	})
}
