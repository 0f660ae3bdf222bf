package incident

import (
	"fmt"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// Scenario is a world and what happens in it. Times are counted from its beginning.
type Scenario struct {
	Name string
	// Length is how long requests keep coming. The run goes on until the last one is over.
	Length time.Duration
	// Rate is how many requests come in a second, at random (a Poisson process), or one after
	// the other at the same distance when Even is set.
	Rate float64
	Even bool
	// Whole says that clients do not ask for streams: an answer's first content is its end.
	Whole bool

	Providers []Provider
	// Routes are what clients ask for, each as often as the others.
	Routes []Route

	// Policy and Limits are the gateway's; zero values are its defaults.
	Policy resilience.Policy
	Limits failover.Limits
	// Hedge is every route's. The zero value means none.
	Hedge failover.Hedge
	// FirstToken is the first-token timeout of every target. Defaults to 60s.
	FirstToken time.Duration
}

// Route is a plan: entries in their order, each tried on all connections of its provider, which
// take turns.
type Route struct {
	Name    string
	Entries []Entry
}

// Entry is one model of one provider.
type Entry struct{ Provider, Model string }

// Provider is a simulated upstream. The zero value of a field means its default.
type Provider struct {
	Name string
	// Connections defaults to one, "k1".
	Connections []string
	// First is the time to the first content. Defaults to a median of 600 ms with a spread of 0.5.
	First Spread
	// Rest is the time from there to the end. Defaults to a median of 3.4 s with a spread of 0.5.
	Rest Spread
	// Refusal is how long a failure takes to come. Defaults to 75 ms with a spread of 0.2.
	Refusal Spread
	// Capacity is how many attempts it bears within a second: while more of them came, failed
	// ones included, every further one fails. 0 means any number.
	Capacity int
	Faults   []Fault
}

// Spread is a lognormal distribution: half of the draws are below Median, and two thirds between
// Median/e^Sigma and Median*e^Sigma.
type Spread struct {
	Median time.Duration
	Sigma  float64
}

// Fault makes attempts fail that are dispatched from From on and before To.
type Fault struct {
	From, To time.Duration // To 0 means to the end
	// Connection and Model narrow it; empty means all.
	Connection, Model string
	// Share is how many of the attempts fail, from 0 to 1. 0 means all.
	Share float64
	// Verdict is what a failed attempt says. Defaults to an internal server error.
	Verdict resilience.Verdict
	// Hang makes the attempts wait for ever instead; first contents that were due between From
	// and To never come either.
	Hang bool
}

// ServerError is what the failure of a whole provider looks like.
var ServerError = resilience.Verdict{
	Scope: resilience.ScopeProvider, Kind: resilience.KindServerError, RetrySame: true, RetryElsewhere: true, Rule: "simulated.500",
}

// complete returns a copy with all defaults filled in, or says what is wrong.
func (s Scenario) complete() (Scenario, error) {
	if s.Length <= 0 || s.Rate <= 0 {
		return s, fmt.Errorf("scenario %q: length %v and rate %v must be positive", s.Name, s.Length, s.Rate)
	}
	if len(s.Routes) == 0 {
		return s, fmt.Errorf("scenario %q has no route", s.Name)
	}
	providers := make([]Provider, len(s.Providers))
	known := map[string]bool{}
	for i, p := range s.Providers {
		if p.Name == "" || known[p.Name] {
			return s, fmt.Errorf("scenario %q: provider name %q is empty or used twice", s.Name, p.Name)
		}
		known[p.Name] = true
		if len(p.Connections) == 0 {
			p.Connections = []string{"k1"}
		}
		set(&p.First, Spread{600 * time.Millisecond, 0.5})
		set(&p.Rest, Spread{3400 * time.Millisecond, 0.5})
		set(&p.Refusal, Spread{75 * time.Millisecond, 0.2})
		faults := make([]Fault, len(p.Faults))
		for j, f := range p.Faults {
			set(&f.To, 1<<62)
			set(&f.Share, 1)
			set(&f.Verdict, ServerError)
			if f.To < f.From || f.Share < 0 || f.Share > 1 {
				return s, fmt.Errorf("scenario %q: fault %d of %s: it needs From <= To and a share from 0 to 1", s.Name, j, p.Name)
			}
			faults[j] = f
		}
		p.Faults = faults
		providers[i] = p
	}
	s.Providers = providers
	for _, r := range s.Routes {
		for _, e := range r.Entries {
			if !known[e.Provider] {
				return s, fmt.Errorf("scenario %q: route %q names the provider %q, which does not exist", s.Name, r.Name, e.Provider)
			}
		}
	}
	return s, nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
