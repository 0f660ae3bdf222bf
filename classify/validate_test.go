package classify

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"omniroute/resilience"
)

func TestRulesThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	ok := Rule{Provider: []string{"acme"}, Status: st("403"), Text: []string{"credit pool empty"}, Scope: connection, Kind: quota, Cooldown: time.Hour}
	with := func(change func(*Rule)) Rule {
		r := ok
		change(&r)
		return r
	}
	for _, tt := range []struct {
		name  string
		rules []Rule
		want  string // part of the error; empty means that the rules are good
	}{
		{"good", []Rule{ok}, ""},
		{"two of one provider", []Rule{ok, with(func(r *Rule) { r.Text = []string{"pool closed"} })}, ""},
		{"narrow before wide", []Rule{ok, with(func(r *Rule) { r.Text = nil })}, ""},
		{"same words for another provider", []Rule{ok, with(func(r *Rule) { r.Provider = []string{"other"} })}, ""},
		{"breaker kinds at provider", []Rule{with(func(r *Rule) { r.Scope, r.Kind = provider, timeout })}, ""},
		{"no condition", []Rule{with(func(r *Rule) { r.Status, r.Text = nil, nil })}, "no condition"},
		{"status of no answer", []Rule{with(func(r *Rule) { r.Status = []StatusRange{{42, 42}} })}, "status: 42 can never match"},
		{"range upside down", []Rule{with(func(r *Rule) { r.Status = []StatusRange{{500, 400}} })}, "can never match"},
		{"dialect", []Rule{with(func(r *Rule) { r.Dialect = []string{"openia"} })}, `dialect: "openia" can never match`},
		{"code without letters", []Rule{with(func(r *Rule) { r.Code = []string{"--"} })}, "code:"},
		{"text of blanks", []Rule{with(func(r *Rule) { r.Text = []string{" * "} })}, "text:"},
		{"text in quotes", []Rule{with(func(r *Rule) { r.Text = []string{`pool "main" empty`} })}, "quotes"},
		{"vetoes itself", []Rule{with(func(r *Rule) { r.Not = []string{"pool"} })}, "never match"},
		{"scope none", []Rule{with(func(r *Rule) { r.Scope = resilience.ScopeNone })}, "scope: none would count a failure as a success"},
		{"cooldown that excludes nothing", []Rule{with(func(r *Rule) { r.Scope = request })}, "cooldown: it has no effect"},
		{"backoff that excludes nothing", []Rule{with(func(r *Rule) { r.Scope, r.Cooldown, r.Constant = client, 0, true })}, "backoff: it has no effect"},
		{"negative cooldown", []Rule{with(func(r *Rule) { r.Cooldown = -1 })}, "cooldown:"},
		{"cooldown of years", []Rule{with(func(r *Rule) { r.Cooldown = 9000 * time.Hour })}, "cooldown:"},
		{"billing at provider", []Rule{with(func(r *Rule) { r.Scope, r.Kind = provider, billing })}, "kind: billing has no effect at scope provider"},
		{"canceled", []Rule{with(func(r *Rule) { r.Kind = resilience.KindCanceled })}, "kind: canceled"},
		{"quarantine of a model", []Rule{with(func(r *Rule) { r.Scope, r.Cooldown, r.Quarantine = model, 0, true })}, "quarantine:"},
		{"certain connection", []Rule{with(func(r *Rule) { r.Certain = true })}, "certain:"},
		{"quarantine with an end", []Rule{with(func(r *Rule) { r.Quarantine = true })}, "cooldown: it has no effect, because a quarantine has no end"},
		{"twice the same", []Rule{ok, ok}, "error_rules[1]: it can never be reached, because error_rules[0]"},
		{"wide before narrow", []Rule{with(func(r *Rule) { r.Text = nil }), ok}, "can never be reached"},
		{"class before status", []Rule{with(func(r *Rule) { r.Status = st("4xx") }), ok}, "can never be reached"},
		{"shorter words before longer", []Rule{with(func(r *Rule) { r.Text = []string{"pool empty"} }), with(func(r *Rule) { r.Text = []string{"credit pool empty now"} })}, "can never be reached"},
		{"any provider before one", []Rule{with(func(r *Rule) { r.Provider = nil }), ok}, "can never be reached"},
		{"wide code before narrow", []Rule{with(func(r *Rule) { r.Text, r.Code = nil, []string{"*quota*"} }), with(func(r *Rule) { r.Text, r.Code = nil, []string{"daily_quota"} })}, "can never be reached"},
		{"header name before value", []Rule{with(func(r *Rule) { r.Text, r.Header = nil, "x-why" }), with(func(r *Rule) { r.Text, r.Header = nil, "X-Why: quota" })}, "can never be reached"},
		{"id twice", []Rule{with(func(r *Rule) { r.ID = "a" }), with(func(r *Rule) { r.ID, r.Status = "a", st("500") })}, `id: "a" is taken`},
	} {
		_, err := New(tt.rules...)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: refused: %v", tt.name, err)
		case tt.want != "" && err == nil:
			t.Errorf("%s: accepted, want an error with %q", tt.name, tt.want)
		case tt.want != "":
			var re *RuleError
			if !errors.As(err, &re) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %q, want a RuleError with %q", tt.name, err, tt.want)
			} else if re.Index != len(tt.rules)-1 {
				t.Errorf("%s: the error is about rule %d, want %d", tt.name, re.Index, len(tt.rules)-1)
			}
		}
	}
}

func TestOperatorRulesComeFirst(t *testing.T) {
	t.Parallel()
	cl := classifier(t,
		Rule{Provider: []string{"acme"}, Status: st("403"), Text: []string{"credit pool empty"}, Scope: connection, Kind: quota, Cooldown: time.Hour, Constant: true},
		Rule{ID: "mine", Code: []string{"E_BUSY"}, Scope: model, Kind: overloaded},
		Rule{ID: "by header", Header: "X-Reason: maintenance", Scope: provider, Kind: serverError},
	)
	body := []byte(`{"error":{"message":"The credit pool empty flag is set, insufficient balance","code":"insufficient_quota"}}`)
	v := cl.Classify(Input{Provider: "acme", Status: 403, Body: body, Now: exampleNow})
	if v.Rule != "error_rules[0]" || v.Kind != quota || v.Scope != connection || v.Cooldown != time.Hour || !v.Constant || v.Quarantine {
		t.Errorf("got %+v", v)
	}
	if v := cl.Classify(Input{Provider: "other", Status: 403, Body: body, Now: exampleNow}); v.Rule == "error_rules[0]" {
		t.Errorf("another provider's answer reached the rule: %v", v)
	}
	if v := cl.Classify(Input{Status: 418, Body: []byte(`{"code":"e-busy"}`), Now: exampleNow}); v.Rule != "mine" || v.Scope != model || !v.RetrySame {
		t.Errorf("got %+v", v)
	}
	if v := cl.Classify(Input{Status: 401, Header: http.Header{"X-Reason": {"Planned Maintenance"}}, Now: exampleNow}); v.Rule != "by header" {
		t.Errorf("got %+v", v)
	}
	if v := cl.Classify(Input{Status: 200, Header: http.Header{"X-Reason": {"maintenance"}}, Body: []byte(healthyAnswer), Now: exampleNow}); v.Scope != resilience.ScopeNone {
		t.Errorf("a rule was asked about a healthy answer: %v", v)
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{{"429", "429"}, {" 5xx ", "5xx"}, {"5XX", "5xx"}, {"500-599", "5xx"}, {"400-403", "400-403"}, {"999", "999"}} {
		if r, err := ParseStatus(tt.in); err != nil || r.String() != tt.want {
			t.Errorf("%q: got %v, %v, want %s", tt.in, r, err, tt.want)
		}
	}
	for _, in := range []string{"", "4x", "42", "1000", "500-400", "6xx", "abc", "4xx-5xx", "-1"} {
		if r, err := ParseStatus(in); err == nil {
			t.Errorf("%q: got %v, want an error", in, r)
		}
	}
}
