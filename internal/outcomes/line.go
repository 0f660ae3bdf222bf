// Package outcomes records what became of requests, so that another configuration can be tried
// against what really happened. A record holds names, times and verdicts; never a prompt, an answer,
// a key or a client's address.
package outcomes

import (
	"time"

	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// Line is one request, one line of JSON in the file. Durations are in milliseconds.
type Line struct {
	At      time.Time `json:"at"`
	Model   string    `json:"model"` // what the client asked for
	Dialect string    `json:"dialect"`
	Stream  bool      `json:"stream,omitempty"`
	// Status is the HTTP status that the client got, 499 when it left. Broke says that an answer
	// ended in the middle.
	Status int  `json:"status"`
	Broke  bool `json:"broke,omitempty"`
	// First is the time to the first content, 0 when there was none; Took that to the end.
	First    float64   `json:"first_ms,omitempty"`
	Took     float64   `json:"took_ms"`
	Input    int64     `json:"input_tokens,omitempty"`
	Output   int64     `json:"output_tokens,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Attempt is one upstream call of a request.
type Attempt struct {
	Provider   string  `json:"provider"`
	Connection string  `json:"connection"`
	Model      string  `json:"model"`
	After      float64 `json:"after_ms"` // from the request's arrival to the dispatch
	Outcome    string  `json:"outcome"`
	Status     int     `json:"status,omitempty"`
	First      float64 `json:"first_ms,omitempty"` // 0 while none had come
	Took       float64 `json:"took_ms"`
	// Verdict is why it failed.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Verdict is resilience.Verdict as far as it matters to another run.
type Verdict struct {
	Scope      resilience.Scope `json:"scope"`
	Kind       resilience.Kind  `json:"kind"`
	Rule       string           `json:"rule,omitempty"`
	Wait       float64          `json:"wait_ms,omitempty"` // how long the upstream said to wait
	Prose      bool             `json:"prose,omitempty"`   // it said so in a sentence
	Certain    bool             `json:"certain,omitempty"`
	Quarantine bool             `json:"quarantine,omitempty"`
	Same       bool             `json:"retry_same,omitempty"`
	Elsewhere  bool             `json:"retry_elsewhere,omitempty"`
	Dial       bool             `json:"dial,omitempty"`
	Cooldown   float64          `json:"cooldown_ms,omitempty"` // of an operator's rule
	Constant   bool             `json:"constant,omitempty"`
}

func verdictOf(v resilience.Verdict, now time.Time) *Verdict {
	wait := v.RetryAfter
	if !v.Until.IsZero() {
		wait = max(wait, v.Until.Sub(now))
	}
	return &Verdict{v.Scope, v.Kind, v.Rule, ms(max(wait, 0)), v.Prose, v.Certain, v.Quarantine, v.RetrySame, v.RetryElsewhere, v.Dial, ms(v.Cooldown), v.Constant}
}

// Resilience returns the verdict that was recorded, with a wait that is shorter by since.
func (v Verdict) Resilience(since time.Duration) resilience.Verdict {
	return resilience.Verdict{
		Scope: v.Scope, Kind: v.Kind, Rule: v.Rule, RetryAfter: max(Span(v.Wait)-since, 0), Prose: v.Prose, Certain: v.Certain, Quarantine: v.Quarantine,
		RetrySame: v.Same, RetryElsewhere: v.Elsewhere, Dial: v.Dial, Cooldown: Span(v.Cooldown), Constant: v.Constant,
	}
}

// Span turns milliseconds of a record into a duration.
func Span(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Key returns the attempt's target.
func (a Attempt) Key() resilience.Key {
	return resilience.Key{Provider: a.Provider, Connection: a.Connection, Model: a.Model}
}

// Of makes the line of a request, and false for one that never came to be routed.
func Of(s telemetry.Story) (Line, bool) {
	if s.Route == "" {
		return Line{}, false
	}
	l := Line{
		At: s.At.UTC().Round(0), Model: s.Model, Dialect: s.Dialect, Stream: s.Stream, Status: s.Status, Broke: s.Broke != "",
		First: ms(s.FirstContent), Took: ms(s.Duration), Input: s.Usage.Input, Output: s.Usage.Output,
	}
	for _, r := range s.Attempts {
		a := Attempt{
			Provider: r.Key.Provider, Connection: r.Key.Connection, Model: r.Key.Model, After: ms(r.At.Sub(s.At)),
			Outcome: string(r.Outcome), Status: r.Status, First: ms(r.FirstContent), Took: ms(r.Duration),
		}
		if v := r.Verdict; v.Scope != resilience.ScopeNone {
			a.Verdict = verdictOf(v, r.At.Add(r.Duration))
		}
		l.Attempts = append(l.Attempts, a)
	}
	return l, true
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
