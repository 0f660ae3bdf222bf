// Package config turns a YAML file, or the environment, into a checked, immutable snapshot.
//
// What it promises: a snapshot that it returns needs no further checks; everything that is wrong with a
// file is reported at once, each error with file, line, column, the source line and what to do; and no secret
// appears in any error, warning or formatted value. It starts nothing and keeps nothing open.
//
// The keys, their types, defaults and descriptions are one table (keys.go). The check, the JSON Schema and the
// reference page are all read off it.
package config

import (
	"time"

	"omniroute/resilience"
)

// Config is one checked configuration. Nothing in it may be changed after it was returned; a reload makes a new one.
type Config struct {
	// File is the path that it was read from, or "environment".
	File string

	// Listen is the address for clients. Defaults to tcp 127.0.0.1:20128.
	Listen Address
	// TLS is nil where clients come without it.
	TLS *TLS
	// Metrics is an address of its own for /metrics. The zero Address means that it is on Listen.
	Metrics Address
	// ClientKeys are the keys that clients may present. Empty means that clients need none.
	ClientKeys []*Client
	// AdminToken guards the admin API. Empty means that it answers loopback callers only.
	AdminToken Secret
	// Store says where the state is kept. Defaults to sqlite, omniroute.db beside the file.
	Store Store
	// MaxBody bounds a request's body, in bytes. Defaults to 64 MiB.
	MaxBody int64
	// MaxBodies bounds what the bodies of requests come to that are held at once, in bytes. Defaults to 1 GiB.
	MaxBodies int64
	// Record says where outcomes are recorded; the zero value, nowhere.
	Record Record
	// ShutdownGrace is how long running requests may take after a stop was asked for. Defaults to 30s.
	ShutdownGrace time.Duration

	// Affinity says how long sessions stay with the target that knows them.
	Affinity Affinity

	// Alerts are who is told over webhooks.
	Alerts []Alert

	// Tracing says where spans go, nil for nowhere.
	Tracing *Tracing

	// Providers and Combos are in the order of the file.
	Providers []*Provider
	Combos    []*Combo

	// Resilience is the policy of providers that say nothing else, with every default filled in.
	Resilience resilience.Policy
	// Relay holds the settings of requests that name no combo.
	Relay Relay
	// ErrorRules are the operator's rules in the order of the file.
	ErrorRules []ErrorRule

	firstTokenSet, answerSet bool // the file sets the general timeouts

	providers map[string]*Provider
	combos    map[string]*Combo
	listed    map[string][]Target // bare model name to who lists it, in config order
	names     []string            // what a client may ask for by name, for the nearest ones
}

// Provider returns the provider of that id, nil when there is none.
func (c *Config) Provider(id string) *Provider { return c.providers[id] }

// Combo returns the combo of that name, nil when there is none.
func (c *Config) Combo(name string) *Combo { return c.combos[name] }

// Affinity says what names a session beside the header x-session-id, and how long sessions are remembered.
type Affinity struct {
	// Fields are the members of a request's body that name a session, in this order; the first that is
	// there counts. Empty: only the header does.
	Fields []string
	// ForgetAfter is how long a session without a request is remembered. Defaults to 1h.
	ForgetAfter time.Duration
	// Sessions is how many are remembered at most. Defaults to 10000.
	Sessions int
}

// Relay holds the budget and the timers of a request. Its values have their defaults filled in.
type Relay struct {
	// MaxAttempts is how many upstream calls a request may cause. Defaults to 6.
	MaxAttempts int
	// Deadline ends a request whatever it is doing. Defaults to 10m.
	Deadline time.Duration
	// Patience is how long a request waits in total for targets that said when they will be back
	// before it moves down a priority combo. 0 means not at all. Defaults to 2s.
	Patience time.Duration
	// PatienceForAny extends patience to failures that said nothing.
	PatienceForAny bool
	// MaxWait is how long a request waits in total when every target is out. 0 means not at all. Defaults to 10s.
	MaxWait time.Duration
	// ConnectTimeout bounds the dial and the TLS handshake. The same for all requests. Defaults to 5s.
	ConnectTimeout time.Duration
	// FirstTokenTimeout bounds the wait for the first content of a stream, AnswerTimeout that for
	// a whole answer. Default to 60s and 5m. A target's own value (Target.FirstTokenTimeout) is more precise.
	FirstTokenTimeout, AnswerTimeout time.Duration
	// IdleTimeout bounds the silence between two reads of a stream, StallTimeout the time in which
	// bytes come but no content. Default to 60s and 120s.
	IdleTimeout, StallTimeout time.Duration
	// SuspectAfter is when an attempt without content becomes suspicious. 0 means auto: from what
	// the model's recent answers took.
	SuspectAfter time.Duration
	// Queue bounds the requests that wait. The same for all requests.
	Queue Queue
	// Keepalive is how often the client of a stream is shown that somebody is there while no answer
	// has begun. 0 means never, which is the default; else at least 1s. Only combos have it.
	Keepalive time.Duration
}

// Record is a file of outcomes.
type Record struct {
	Path string
	// MaxSize is how many bytes it may grow to, the older half that is kept beside it included.
	MaxSize int64
}

// Queue bounds the requests that wait.
type Queue struct {
	// Wait is how long, and Depth how many, requests wait for a free place at a target. Default to 30s and 100.
	Wait  time.Duration
	Depth int
	// Recovery is how many requests wait for one target's recovery. Defaults to 2000.
	Recovery int
}

// Combo is a named list of targets, or, with no name in the file, what a model name stands for.
type Combo struct {
	// Name is what clients ask for.
	Name     string
	Strategy Strategy
	// Entries are in the order of the file: targets, and combos at most four deep. Empty when every
	// connection that they name was left out.
	Entries []Entry
	// Targets are all targets in it and in the combos in it, in the order of the file, each with the
	// timeouts that it has for requests that name this combo.
	Targets []Target
	// Relay holds the effective settings: the combo's own keys over the general ones. Those of the combo
	// that the client named count, not those of combos in it.
	Relay Relay
	// Hedge is nil where no second target is asked beside a slow one. As with Relay the one of the
	// combo that the client named counts.
	Hedge *Hedge
	// LastResort tries the target that will be back soonest when all are out and none will be in
	// time. As with Relay the named combo's own counts.
	LastResort bool
	// Recover finishes answers that broke off. As with Hedge the named combo's own counts.
	Recover bool

	firstTokenSet, answerSet bool // the combo sets these timeouts itself
}

// Hedge says when a second target is asked beside one that is slow.
type Hedge struct {
	// After is how long an attempt may show no content; 0 means as long as 95 of 100 recent ones
	// took, which is the default.
	After time.Duration
	// Budget is how many attempts may be started so, as a share of the combo's requests: above 0,
	// at most 1. Defaults to 0.05.
	Budget float64
}

// Entry is one line of a combo.
type Entry struct {
	// Combo is the combo that stands here, nil where it is a target.
	Combo  *Combo
	Target Target
	// Weight is its share where the strategy shares. At least 1, which is the default.
	Weight int
}

// Strategy says in which order a combo's targets are tried.
type Strategy string

// The strategies. All but Priority choose anew for each request, among those that are eligible.
const (
	Priority   Strategy = "priority"    // top to bottom
	Weighted   Strategy = "weighted"    // by chance, by weight
	RoundRobin Strategy = "round-robin" // taking turns, by weight
	LeastBusy  Strategy = "least-busy"  // the fewest calls in flight, by weight
	Fastest    Strategy = "fastest"     // the shortest time to first content, of two that are drawn
	Headroom   Strategy = "headroom"    // the most left of its rate limits
	Cost       Strategy = "cost"        // the cheapest
	Random     Strategy = "random"      // by chance, all alike
)

// Strategies returns all of them, as the file has them.
func Strategies() []string {
	return []string{string(Priority), string(RoundRobin), string(Weighted), string(LeastBusy), string(Fastest), string(Headroom), string(Cost), string(Random)}
}

// Target is a model of a provider, on one of its connections or on any.
type Target struct {
	Provider *Provider
	// Connection is nil when any connection of the provider will do.
	Connection *Connection
	Model      string
	// Context is the model's window in tokens, 0 when it is not known.
	Context int
	// FirstTokenTimeout and AnswerTimeout are the effective ones. From the strongest: the combo's, the listed
	// model's, the provider's, the general ones where the file sets them, the catalogue's for slow
	// thinkers, the defaults.
	FirstTokenTimeout, AnswerTimeout time.Duration
}

// Name returns "provider/model", as clients write it.
func (t Target) Name() string { return t.Provider.ID + "/" + t.Model }
