package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"omniroute/resilience"
)

// ResetRequest is the body of POST /admin/v1/reset. Scope is provider, connection, model or all and
// says which of the names must be given; a model without a connection is meant on all of them.
type ResetRequest struct {
	Scope      string `json:"scope"`
	Provider   string `json:"provider,omitempty"`
	Connection string `json:"connection,omitempty"`
	Model      string `json:"model,omitempty"`
	// IncludeOperator ends operators' own exclusions too.
	IncludeOperator bool `json:"include_operator,omitempty"`
}

func (q ResetRequest) key() resilience.Key {
	return resilience.Key{Provider: q.Provider, Connection: q.Connection, Model: q.Model}
}

const (
	resetFields  = "scope, provider, connection, model and include_operator"
	resetExample = `{"scope": "provider", "provider": "openai"}`
)

// reset ends exclusions. The engine makes an event of it.
func (a *Admin) reset(w http.ResponseWriter, r *http.Request) error {
	var q ResetRequest
	if err := read(w, r, &q, resetFields, resetExample); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	if err := a.known(q.key()); err != nil {
		return err
	}
	n := a.engine.Reset(q.key(), q.IncludeOperator)
	a.log.Info("an operator has reset", "scope", q.Scope, "key", q.key().String(), "include_operator", q.IncludeOperator,
		"breakers", n.Breakers, "connections", n.Connections, "lockouts", n.Lockouts, "peer", r.RemoteAddr)
	detail := fmt.Sprintf("%s: %d breakers, %d connections, %d lockouts", q.Scope, n.Breakers, n.Connections, n.Lockouts)
	if q.IncludeOperator {
		detail += ", operators' exclusions too"
	}
	a.note(r, "reset", q.key(), detail)
	writeJSON(w, http.StatusOK, n)
	return nil
}

// check compares the scope with the names that are given.
func (q ResetRequest) check() error {
	type rule struct{ need, may []string }
	scopes := map[string]rule{
		"provider":   {need: []string{"provider"}},
		"connection": {need: []string{"provider", "connection"}},
		"model":      {need: []string{"provider", "model"}, may: []string{"connection"}},
		"all":        {},
	}
	s, ok := scopes[q.Scope]
	switch {
	case q.Scope == "":
		return invalid("scope is missing; it is provider, connection, model or all, as in %s", resetExample)
	case !ok:
		return invalid("scope %q is none; it is provider, connection, model or all", shown(q.Scope))
	}
	for _, f := range []struct{ name, value string }{{"provider", q.Provider}, {"connection", q.Connection}, {"model", q.Model}} {
		switch needed := slices.Contains(s.need, f.name); {
		case needed && f.value == "":
			return invalid("%s is missing: scope %s needs %s", f.name, q.Scope, strings.Join(s.need, " and "))
		case !needed && f.value != "" && !slices.Contains(s.may, f.name):
			return invalid("scope %s takes no %s; leave it out, or use scope %s", q.Scope, f.name, narrower(q))
		}
	}
	return nil
}

// narrower is the scope that the given names make.
func narrower(q ResetRequest) string {
	switch {
	case q.Model != "":
		return "model"
	case q.Connection != "":
		return "connection"
	}
	return "provider"
}

// ExcludeRequest is the body of POST /admin/v1/exclude, and, without For, Kind and Reason, of DELETE.
type ExcludeRequest struct {
	Provider   string `json:"provider"`
	Connection string `json:"connection,omitempty"`
	Model      string `json:"model,omitempty"`
	// For is how long, as in "10m". Without it and without Kind only DELETE ends the exclusion.
	For string `json:"for,omitempty"`
	// Kind reports a failure of that kind instead: the gate does what it does with such a failure.
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// ExcludeAnswer says what stands now for what the request named.
type ExcludeAnswer struct {
	Excluded bool `json:"excluded"`
	// Layer and Kind are of the strictest exclusion, null when there is none.
	Layer        *resilience.Layer    `json:"layer"`
	Kind         *resilience.Kind     `json:"kind"`
	Until        resilience.Timestamp `json:"until"`
	RetryAfterMs int64                `json:"retry_after_ms"`
}

const (
	excludeFields  = "provider, connection, model, for, kind and reason"
	excludeExample = `{"provider": "openai", "connection": "main", "for": "10m", "reason": "maintenance"}`
	maxFor         = 366 * 24 * time.Hour
	maxReason      = 500
)

func (a *Admin) exclude(w http.ResponseWriter, r *http.Request) error {
	var q ExcludeRequest
	if err := read(w, r, &q, excludeFields, excludeExample); err != nil {
		return err
	}
	key := resilience.Key{Provider: q.Provider, Connection: q.Connection, Model: q.Model}
	switch {
	case q.Provider == "":
		return invalid("provider is missing; send an object such as %s", excludeExample)
	case q.For != "" && q.Kind != "":
		return invalid("for and kind exclude each other: for sets an end, kind lets the gate choose it; leave one out")
	case len(q.Reason) > maxReason:
		return invalid("the reason is longer than %d bytes; shorten it", maxReason)
	}
	if err := a.known(key); err != nil {
		return err
	}
	if q.Kind != "" {
		return a.report(w, r, key, q)
	}
	var d time.Duration
	if q.For != "" {
		var err error
		if d, err = time.ParseDuration(q.For); err != nil || d <= 0 || d > maxFor {
			return invalid("for %q is no duration up to a year; write one such as 10m or 2h30m", shown(q.For))
		}
	}
	if err := a.engine.Exclude(key, d, q.Reason); err != nil {
		return invalid("%v", err)
	}
	a.log.Info("an operator has excluded", "key", key.String(), "for", q.For, "reason", q.Reason, "peer", r.RemoteAddr)
	a.note(r, "exclude", key, detailOf("for "+q.For, q.For != "", q.Reason))
	a.writeStanding(w, key)
	return nil
}

// detailOf joins what is said of a change.
func detailOf(what string, said bool, reason string) string {
	switch {
	case !said:
		return reason
	case reason == "":
		return what
	}
	return what + ": " + reason
}

// reportable are the kinds that exclude what they are reported of.
func reportable() []string {
	var names []string
	for _, k := range resilience.Kinds() {
		switch k {
		case resilience.KindUnknown, resilience.KindContextLength, resilience.KindContentPolicy,
			resilience.KindInvalidRequest, resilience.KindTooLarge, resilience.KindCanceled:
		default:
			names = append(names, k.String())
		}
	}
	return names
}

// report applies an exclusion as a failure that was reported.
func (a *Admin) report(w http.ResponseWriter, r *http.Request, key resilience.Key, q ExcludeRequest) error {
	kind, err := resilience.ParseKind(q.Kind)
	switch {
	case err != nil || !slices.Contains(reportable(), q.Kind):
		return invalid("kind %q takes nothing out of service; use one of %s", shown(q.Kind), strings.Join(reportable(), ", "))
	case key.Connection == "":
		return invalid("kind is reported of a connection, or of a model on it; add the connection, or use for to exclude all of them")
	case kind == resilience.KindModelNotFound && key.Model == "":
		return invalid("kind model_not_found is a model's; add the model")
	}
	v := resilience.Verdict{Scope: resilience.ScopeConnection, Kind: kind, Rule: "operator", Evidence: q.Reason}
	if key.Model != "" {
		v.Scope = resilience.ScopeModel
	}
	a.engine.RecordFailure(key, v)
	a.log.Info("an operator has reported a failure", "key", key.String(), "kind", q.Kind, "reason", q.Reason, "peer", r.RemoteAddr)
	a.note(r, "report_failure", key, detailOf(q.Kind, true, q.Reason))
	a.writeStanding(w, key)
	return nil
}

// writeStanding answers with what holds for the key now.
func (a *Admin) writeStanding(w http.ResponseWriter, key resilience.Key) {
	var answer ExcludeAnswer
	if x, out := a.engine.Target(key).Check(); out {
		answer = ExcludeAnswer{Excluded: true, Layer: &x.Layer, Until: resilience.Timestamp{Time: x.Until}, RetryAfterMs: x.RetryAfter.Milliseconds()}
		if x.Layer != resilience.LayerOperator {
			answer.Kind = &x.Kind
		}
	}
	writeJSON(w, http.StatusOK, answer)
}

// include ends an operator's exclusion.
func (a *Admin) include(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Provider   string `json:"provider"`
		Connection string `json:"connection"`
		Model      string `json:"model"`
	}
	const example = `{"provider": "openai", "connection": "main"}`
	if err := read(w, r, &q, "provider, connection and model", example); err != nil {
		return err
	}
	if q.Provider == "" {
		return invalid("provider is missing; send an object such as %s", example)
	}
	key := resilience.Key(q)
	if err := a.known(key); err != nil {
		return err
	}
	if !a.engine.Include(key) {
		return refuse(http.StatusNotFound, "not_found", "no operator's exclusion of %s stands%s", key, a.standing())
	}
	a.log.Info("an operator has ended an exclusion", "key", key.String(), "peer", r.RemoteAddr)
	a.note(r, "end_exclusion", key, "")
	a.writeStanding(w, key)
	return nil
}

// standing lists the operators' exclusions in force, for a message.
func (a *Admin) standing() string {
	var names []string
	for _, o := range a.engine.Status().Operator {
		names = append(names, o.Key.String())
	}
	if len(names) == 0 {
		return "; none does"
	}
	return "; those in force are of " + shown(strings.Join(names, ", "))
}

// known returns a 404 for a provider or connection that the configuration does not have. A model
// may be any: upstreams have more than a configuration lists.
func (a *Admin) known(key resilience.Key) error {
	if key.Provider == "" {
		return nil
	}
	cfg := a.config()
	p := cfg.Provider(key.Provider)
	if p == nil {
		var names []string
		for _, p := range cfg.Providers {
			names = append(names, p.ID)
		}
		return refuse(http.StatusNotFound, "not_found", "there is no provider %q%s", shown(key.Provider), suggest(key.Provider, names))
	}
	if key.Connection == "" || p.Connection(key.Connection) != nil {
		return nil
	}
	if slices.Contains(p.LeftOut, key.Connection) {
		return refuse(http.StatusNotFound, "not_found", "the connection %q of %s was left out, since its key is not set", shown(key.Connection), p.ID)
	}
	var names []string
	for _, c := range p.Connections {
		names = append(names, c.ID)
	}
	return refuse(http.StatusNotFound, "not_found", "%s has no connection %q%s", p.ID, shown(key.Connection), suggest(key.Connection, names))
}
