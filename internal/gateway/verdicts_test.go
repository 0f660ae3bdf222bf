package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/classify"
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
			length := "for ever"
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

// verdictCase is one way to fail.
type verdictCase struct {
	name  string
	fault lab.Fault
	match func(connection, model string) bool // whom it meets; nil: the model mm-1 on k1
	ask   []string                            // the combos that are asked for until the gates stand as wanted; nil: c once
	gap   time.Duration                       // between two of them
	// answer is the client's status while the fault lasts, 0 for 200.
	answer int
	want   []string // what is shut then
	// served are who answers requests for c, first, other and account after that, "-" for nobody.
	served string
}

// Who serves while a gate is shut: none, the model on k1, the connection k1, the provider p.
const (
	openAll        = "k1 k1 k1 k2"
	shutModel      = "k2 - k1 k2"
	shutConnection = "k2 - - k2"
	shutProvider   = "k3 - - -"
)

func verdictCases() []verdictCase {
	connection := func(name string, fault lab.Fault, why, length string) verdictCase {
		return verdictCase{name: "connection " + name, fault: fault, want: []string{"connection p/k1 " + why + " " + length}, served: shutConnection}
	}
	model := func(name string, fault lab.Fault, why, length string) verdictCase {
		return verdictCase{name: "model " + name, fault: fault, want: []string{"model p/k1/mm-1 " + why + " " + length}, served: shutModel}
	}
	// The second failure in a row of one model takes it out on its connection, until a second model
	// shows that the connection is at fault.
	transient := func(kind string, fault lab.Fault) verdictCase {
		return verdictCase{name: "provider " + kind, fault: fault, ask: []string{"c", "c"},
			want: []string{"connection p/k1 for mm-1 cooling " + kind + " 1s"}, served: shutModel}
	}
	lock := func(kind string, fault lab.Fault, length string) verdictCase {
		return verdictCase{name: "model " + kind + " locked", fault: fault, ask: []string{"c", "c", "c"}, gap: 10 * time.Second,
			want: []string{"model p/k1/mm-1 locked " + kind + " " + length}, served: shutModel}
	}
	nothing := func(name string, fault lab.Fault, answer int) verdictCase {
		return verdictCase{name: name, fault: fault, answer: answer, served: openAll}
	}
	everywhere := lab.OnConnection("k1", "k2")
	perMinute := "Rate limit reached for mm-1 on requests per minute."
	return []verdictCase{
		connection("rate_limit", lab.RateLimited(lab.Hint{}), "cooling rate_limit", "1s"),
		connection("rate_limit, stated", lab.RateLimited(lab.RetryAfter(30*time.Second)), "cooling rate_limit", "30s"),
		connection("quota_exhausted", answering(429, "quota_exceeded", "Your weekly quota is used up."), "cooling quota_exhausted", "5m0s"),
		connection("quota_exhausted, stated", answering(429, "", "Your weekly quota is used up.", "Retry-After", "7200"), "cooling quota_exhausted", "2h0m0s"),
		connection("billing", lab.PaymentRequired(), "quarantined billing", "for ever"),
		connection("billing, called a quota", lab.QuotaExhausted(), "quarantined billing", "for ever"),
		connection("auth, unexplained", answering(401, "", "Unauthorized"), "cooling auth", "2m0s"),
		connection("auth", lab.Unauthorized(), "quarantined auth", "for ever"),
		connection("auth, revoked", lab.KeyRevoked(), "quarantined auth", "for ever"),
		connection("auth, deactivated", answering(403, "account_deactivated", "This account has been deactivated."), "quarantined auth", "for ever"),
		connection("permission, unexplained", answering(403, "", "Forbidden"), "cooling permission", "1s"),

		model("rate_limit", answering(429, "rate_limit_exceeded", perMinute), "counting rate_limit", "1s"),
		model("rate_limit, stated", answering(429, "rate_limit_exceeded", perMinute, "Retry-After", "20"), "locked rate_limit", "20s"),
		lock("rate_limit", answering(429, "rate_limit_exceeded", perMinute), "2m0s"),
		model("quota_exhausted", answering(429, "", "The daily quota of model mm-1 is used up."), "counting quota_exhausted", "5m0s"),
		model("permission", lab.Forbidden(), "locked permission", "2m0s"),
		model("model_not_found", lab.ModelNotFound(), "locked model_not_found", "10m0s"),
		model("model_overloaded", lab.ModelOverloaded(lab.Hint{}), "counting model_overloaded", "1s"),
		lock("model_overloaded", lab.ModelOverloaded(lab.Hint{}), "15s"),
		model("empty_response", lab.NoContent(), "counting empty_response", "1s"),
		lock("empty_response", lab.NoContent(), "15s"),

		transient("server_error", lab.ServerError()),
		transient("model_overloaded", lab.Overloaded()),
		transient("network", lab.ResetBeforeHeaders()),
		transient("timeout", lab.Hang()),
		transient("malformed_response", lab.HTML200()),
		// A second model on the key makes it the key's.
		{name: "provider server_error, two models", fault: lab.ServerError(), match: lab.OnConnection("k1"), ask: []string{"first", "other", "first", "other"},
			want: []string{"connection p/k1 cooling server_error 1s"}, served: shutConnection},
		// Two keys and two models make it the provider's.
		{name: "provider server_error, two keys", fault: lab.ServerError(), match: everywhere, ask: []string{"c", "account", "c"}, gap: 3 * time.Second,
			want: []string{"breaker p OPEN server_error 30s", "connection p/k1 for mm-1 cooling server_error 1s", "connection p/k2 for mm-1 cooling server_error 1s"}, served: shutProvider},
		{name: "provider permission", fault: answering(403, "unsupported_country_region_territory", "Country, region, or territory not supported"), match: everywhere,
			ask: []string{"c", "account", "c"}, want: []string{"breaker p OPEN permission 30s"}, served: shutProvider},

		nothing("request context_length", lab.ContextLength(), 400), // nobody has a larger window
		nothing("request content_policy", lab.ContentPolicy(), 0),   // another provider may take it
		nothing("request too_large", answering(413, "request_too_large", "The request is too large."), 0),
		nothing("client invalid_request", lab.Invalid(), 400),
	}
}

// TestEachVerdictShutsItsGate has an answer of each kind and scope. Afterwards exactly the gate that
// should be is shut, for the right time; requests go where they should, and come back when the time
// is over.
func TestEachVerdictShutsItsGate(t *testing.T) {
	t.Parallel()
	for _, c := range verdictCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.run(t, gatewaytest.New(t, verdictWorld, verdictLabs()...)) })
		})
	}
}

func (c verdictCase) run(t *testing.T, w *gatewaytest.World) {
	p := w.Providers["p"]
	match := c.match
	if match == nil {
		match = lab.OnTarget("k1", "mm-1")
	}
	p.SetScript(lab.Phase{Match: match, Fault: c.fault})
	ask := c.ask
	if ask == nil {
		ask = []string{"c"}
	}
	for i, name := range ask {
		if i > 0 {
			time.Sleep(c.gap)
		}
		if a := w.Chat(t.Context(), name, false); name == "c" && a.Status != max(c.answer, 200) {
			t.Errorf("the client got %d %s, want %d", a.Status, a.Body, max(c.answer, 200))
		}
	}
	if got := shut(w); !slices.Equal(got, c.want) {
		t.Fatalf("shut: %q, want %q\n%s", got, c.want, told(w))
	}

	p.SetFault(lab.Fault{}) // well again, and nobody knows
	if got := servedNow(t, w); got != c.served {
		t.Errorf("requests are served by %q, want %q", got, c.served)
	}
	if len(c.want) == 0 {
		return
	}
	if got := shut(w); !slices.Equal(got, c.want) {
		t.Errorf("after requests that went elsewhere: %q, want %q", got, c.want)
	}

	// A sole target is tried every minute where the end is far or not known.
	end, err := time.ParseDuration(c.want[0][strings.LastIndexByte(c.want[0], ' ')+1:])
	if err != nil || end > 15*time.Minute {
		end = time.Minute
	}
	time.Sleep(end - time.Millisecond)
	before := p.Total()
	if a := w.Chat(t.Context(), "first", false); a.Status == 200 || p.Total() != before {
		t.Errorf("a millisecond before its time the target was tried: %d", a.Status)
	}
	time.Sleep(time.Millisecond)
	if a := w.Chat(t.Context(), "first", false); a.Status != 200 {
		t.Errorf("its time was over and the target was not tried: %d %s, %q", a.Status, a.Body, shut(w))
	}
	if got := shut(w); len(got) > 0 {
		t.Errorf("after a good answer there is still shut: %q", got)
	}
	if got := servedNow(t, w); got != openAll {
		t.Errorf("afterwards requests are served by %q, want %q", got, openAll)
	}
}

// servedNow asks for each combo and says which connections answered.
func servedNow(t *testing.T, w *gatewaytest.World) string {
	t.Helper()
	var by []string
	for _, name := range []string{"c", "first", "other", "account"} {
		a := w.Chat(t.Context(), name, false)
		who := "-"
		if a.Status == 200 {
			who = a.Header.Get("X-Omniroute-Connection")
		}
		by = append(by, who)
	}
	return strings.Join(by, " ")
}

// told lists every attempt and its verdict.
func told(w *gatewaytest.World) string {
	var out strings.Builder
	for _, s := range w.Stories() {
		for _, a := range s.Attempts {
			fmt.Fprintln(&out, a.Key, a.Verdict.Scope, a.Verdict.Kind, a.Verdict.Rule)
		}
	}
	return out.String()
}

// TestEachRuleIsHeardByItsGate sends one example of every built-in rule through the gateway: whatever
// rule judged it, exactly the gate that its verdict is for has heard it.
func TestEachRuleIsHeardByItsGate(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	pairs := map[string]bool{}
	t.Run("rules", func(t *testing.T) {
		for _, r := range classify.BuiltinRules() {
			if len(r.Examples) == 0 || r.Examples[0].Phase != classify.PhaseBody || r.Examples[0].Status == 0 {
				continue // streams and connections are elsewhere in this package
			}
			name := "p"
			if len(r.Provider) > 0 {
				name = r.Provider[0]
			}
			t.Run(r.ID, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					v := hearExample(t, name, r.Examples[0])
					mu.Lock()
					defer mu.Unlock()
					pairs[fmt.Sprint(v.Scope, " ", v.Kind)] = true
				})
			})
		}
	})
	if len(pairs) < 25 {
		t.Errorf("only %d kinds and scopes were met: %v", len(pairs), pairs)
	}
}

// hearExample makes the answer the upstream's only one and checks who has heard its verdict.
func hearExample(t *testing.T, name string, e classify.Example) resilience.Verdict {
	t.Helper()
	header := http.Header{}
	for line := range strings.Lines(e.Header) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			header.Set(k, strings.TrimSpace(v))
		}
	}
	contentType := header.Get("Content-Type")
	header.Del("Content-Type")
	w := gatewaytest.New(t, `
store: "memory:"
providers:
  `+name+`: {dialect: openai, base_url: "$up", connections: [{id: k1, api_key: secret-1}], models: [mm-1]}
relay: {max_wait: 0s}
`, lab.Options{Name: "up", Script: []lab.Phase{lab.Always(lab.Status(e.Status, contentType, e.Body, header))}})
	a := w.Chat(t.Context(), name+"/mm-1", false)
	stories := w.Stories()
	if len(stories) != 1 || len(stories[0].Attempts) != 1 {
		t.Fatalf("%d %s: %d attempts, want one", a.Status, a.Body, w.Providers["up"].Total())
	}
	v := stories[0].Attempts[0].Verdict
	gates, breaker := shut(w), w.Engine.Status().Providers[0].Breaker
	want, counted := "", 0
	switch v.Scope {
	case resilience.ScopeNone:
		t.Errorf("%d %s is no failure", e.Status, e.Body)
	case resilience.ScopeModel:
		want = "model " + name + "/k1/mm-1 "
	case resilience.ScopeConnection:
		want = "connection " + name + "/k1 "
	case resilience.ScopeProvider:
		switch v.Kind {
		case resilience.KindRateLimit, resilience.KindQuotaExhausted, resilience.KindBilling, resilience.KindAuth:
			want = "connection " + name + "/k1 "
		default:
			counted = 1
		}
	}
	switch {
	case want == "" && len(gates) > 0, want != "" && (len(gates) != 1 || !strings.HasPrefix(gates[0], want)):
		t.Errorf("%v/%v by %s: shut: %q, want %q alone", v.Scope, v.Kind, v.Rule, gates, want)
	case breaker.Failures != counted:
		t.Errorf("%v/%v by %s: the breaker counted %d failures, want %d", v.Scope, v.Kind, v.Rule, breaker.Failures, counted)
	case a.Status < 400:
		t.Errorf("the client got %d", a.Status)
	}
	return v
}
