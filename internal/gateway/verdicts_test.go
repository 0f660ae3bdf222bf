package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
	"omniroute/resilience"
)

// verdictWorld has a combo of one model on two keys of p and on q, and a second model on p.
const verdictWorld = `
store: "memory:"
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: secret-p1}, {id: k2, api_key: secret-p2}], models: [mm-1, nn-1]}
  q: {base_url: "$q", connections: [{id: k3, api_key: secret-q3}], models: [mm-1]}
resilience: {breaker: {early_probes: []}}
relay: {answer_timeout: 20s, max_wait: 0s}
combos:
  c: {strategy: priority, targets: [{target: p/mm-1, connection: k1}, {target: p/mm-1, connection: k2}, q/mm-1]}
  first: {targets: [{target: p/mm-1, connection: k1}]}
  other: {targets: [{target: p/nn-1, connection: k1}]}
  account: {targets: [{target: p/nn-1, connection: k2}]}
`

func verdictLabs() []lab.Options {
	return []lab.Options{
		{Name: "p", Seed: 1, Keys: map[string]string{"secret-p1": "k1", "secret-p2": "k2"}},
		{Name: "q", Seed: 2, Keys: map[string]string{"secret-q3": "k3"}},
	}
}

// answering is a refusal with OpenAI's envelope.
func answering(status int, code, message string, header ...string) lab.Fault {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return lab.Status(status, "application/json", fmt.Sprintf(`{"error":{"message":%q,"type":"error","code":%q}}`, message, code), h)
}

// shut lists every gate that is shut, one a line: what, why, for how long.
func shut(w *gatewaytest.World) []string {
	var out []string
	s := w.Engine.Status()
	for _, p := range s.Providers {
		if b := p.Breaker; b.State != resilience.Closed && b.State != resilience.Degraded {
			out = append(out, fmt.Sprintf("breaker %s %s %v %v", p.ID, b.State, *b.LastKind, time.Until(b.ResetAt.Time)))
		}
		for _, c := range p.Connections {
			if c.State == resilience.Ready {
				continue
			}
			length := "without end"
			if !c.RateLimitedUntil.IsZero() {
				length = time.Until(c.RateLimitedUntil.Time).String()
			}
			name := p.ID + "/" + c.ID
			if len(c.Models) > 0 {
				name += " for " + strings.Join(c.Models, ",")
			}
			out = append(out, fmt.Sprintf("connection %s %s %v %s", name, c.State, *c.Kind, length))
		}
	}
	for _, l := range s.Lockouts {
		word := "counting"
		if l.Locked {
			word = "locked"
		}
		out = append(out, fmt.Sprintf("model %s/%s/%s %s %v %v", l.Provider, l.Connection, l.Model, word, l.Kind, time.Until(l.LockedUntil.Time)))
	}
	slices.Sort(out)
	return out
}

// A case is one way to fail, by the first target of the combo and its neighbours as the match says.
type verdictCase struct {
	name     string
	fault    lab.Fault
	match    func(connection, model string) bool // nil: the model mm-1 on k1
	requests int                                 // after so many the gates stand as wanted; 0 means 1
	answer   int                                 // the client's status; 0 means 200
	want     []string                            // what is shut
}

func verdictCases() []verdictCase {
	connection := func(kind, length string) []string { return []string{"connection p/k1 " + kind + " " + length} }
	model := func(kind, length string) []string { return []string{"model p/k1/mm-1 " + kind + " " + length} }
	return []verdictCase{
		{name: "connection rate_limit", fault: lab.RateLimited(lab.Hint{}), want: connection("cooling rate_limit", "1s")},
		{name: "connection rate_limit with a hint", fault: lab.RateLimited(lab.RetryAfter(30 * time.Second)), want: connection("cooling rate_limit", "30s")},
		{name: "connection quota_exhausted", fault: answering(429, "quota_exceeded", "Your weekly quota is used up."), want: connection("cooling quota_exhausted", "5m0s")},
		{name: "connection quota_exhausted with a hint", fault: answering(429, "", "Slow down", "Retry-After", "7200"), want: connection("cooling quota_exhausted", "2h0m0s")},
		{name: "connection billing", fault: lab.PaymentRequired(), want: connection("quarantined billing", "without end")},
		{name: "connection billing as a quota", fault: lab.QuotaExhausted(), want: connection("quarantined billing", "without end")},
		{name: "connection auth", fault: lab.Unauthorized(), want: connection("cooling auth", "2m0s")},
		{name: "connection auth for good", fault: lab.KeyRevoked(), want: connection("quarantined auth", "without end")},
		{name: "connection permission", fault: answering(403, "", "Your account has no permission to use the API."), want: connection("quarantined permission", "without end")},

		{name: "model rate_limit", fault: answering(429, "rate_limit_exceeded", "Rate limit reached for mm-1 on requests per minute."), want: model("counting rate_limit", "1s")},
		{name: "model rate_limit with a hint", fault: answering(429, "rate_limit_exceeded", "Rate limit reached for mm-1 on requests per minute.", "Retry-After", "20"), want: model("locked rate_limit", "20s")},
		{name: "model quota_exhausted", fault: answering(429, "", "The daily quota of model mm-1 is used up."), want: model("counting quota_exhausted", "5m0s")},
		{name: "model permission", fault: lab.Forbidden(), want: model("locked permission", "2m0s")},
		{name: "model model_not_found", fault: lab.ModelNotFound(), want: model("locked model_not_found", "10m0s")},
		{name: "model model_overloaded", fault: lab.ModelOverloaded(lab.Hint{}), want: model("counting model_overloaded", "1s")},

		{name: "provider server_error", fault: lab.ServerError(), requests: 2, want: connection("for mm-1 cooling server_error", "1s")},
		{name: "provider model_overloaded", fault: lab.Overloaded(), requests: 2, want: connection("for mm-1 cooling model_overloaded", "1s")},
		{name: "provider network", fault: lab.ResetBeforeHeaders(), requests: 2, want: connection("for mm-1 cooling network", "1s")},
		{name: "provider timeout", fault: lab.Hang(), requests: 2, want: connection("for mm-1 cooling timeout", "1s")},
		{name: "provider malformed_response", fault: lab.HTML200(), requests: 2, want: connection("for mm-1 cooling malformed_response", "1s")},
		{name: "provider empty_response", fault: lab.NoContent(), requests: 2, want: connection("for mm-1 cooling empty_response", "1s")},
		{name: "provider server_error on both keys", fault: lab.ServerError(), match: lab.OnConnection("k1", "k2"), requests: 3,
			want: []string{"breaker p OPEN server_error 30s"}},
		{name: "provider permission on both keys", fault: answering(403, "unsupported_country_region_territory", "Country, region, or territory not supported"), match: lab.OnConnection("k1", "k2"), requests: 3,
			want: []string{"breaker p OPEN permission 30s"}},

		{name: "request context_length", fault: lab.ContextLength()},
		{name: "request content_policy", fault: lab.ContentPolicy()},
		{name: "request too_large", fault: answering(413, "request_too_large", "The request is too large.")},
		{name: "client invalid_request", fault: lab.Invalid(), answer: 400},
	}
}

func TestEachVerdictShutsItsGate(t *testing.T) {
	t.Parallel()
	for _, c := range verdictCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := gatewaytest.New(t, verdictWorld, verdictLabs()...)
				match := c.match
				if match == nil {
					match = lab.OnTarget("k1", "mm-1")
				}
				w.Providers["p"].SetScript(lab.Phase{Match: match, Fault: c.fault})
				var a gatewaytest.Answer
				for range max(c.requests, 1) {
					a = w.Chat(t.Context(), "c", false)
				}
				got := shut(w)
				t.Logf("%d %s %s %q", a.Status, a.Header.Get("X-Omniroute-Provider"), a.Header.Get("X-Omniroute-Connection"), got)
				for _, s := range w.Stories() {
					for _, at := range s.Attempts {
						t.Log(at.Key, at.Verdict.Scope, at.Verdict.Kind, at.Verdict.Rule)
					}
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("shut: %q, want %q", got, c.want)
				}
			})
		})
	}
}
