package simulate

import (
	"time"

	"omniroute/resilience"
)

// Report is what happened in a run. Times are in milliseconds from the beginning.
type Report struct {
	Title    string  `json:"title"`
	Seed     uint64  `json:"seed"`
	Nodes    int     `json:"nodes"`
	LengthMS int64   `json:"length_ms"`
	Requests int     `json:"requests"`
	Answered int     `json:"answered"`
	Broken   int     `json:"broken"`         // the client saw a beginning and an error
	Failed   int     `json:"failed"`         // the client saw an error
	Left     int     `json:"left"`           // the client did not wait
	Resumed  int     `json:"resumed"`        // attempts that finished another's answer
	Attempts int     `json:"attempts"`       // dispatched upstream calls
	Wasted   int     `json:"wasted"`         // those that came to nothing
	Perfect  float64 `json:"answered_share"` // of those whose client waited, from 0 to 1
	Cost     float64 `json:"cost_usd"`
	// CostWasted is what of Cost attempts took that came to nothing, Unpriced how many attempts are
	// missing in it, since nobody knows what their model costs.
	CostWasted float64 `json:"cost_wasted_usd"`
	Unpriced   int     `json:"unpriced_attempts"`
	// Causes counts the failures by why.
	Causes map[string]int `json:"causes"`
	// Added is the time from a request's arrival to the dispatch of the attempt that answered it;
	// First that to its first content.
	Added Quantiles `json:"added_ms"`
	First Quantiles `json:"first_content_ms"`

	// Phases are the time before the first trouble, from there to the end of the last, and after it.
	Phases     []Phase        `json:"phases"`
	Targets    []TargetReport `json:"targets"`
	Troubles   []Trouble      `json:"troubles"`
	Exclusions []Exclusion    `json:"longest_exclusions"`
	Timeline   []Interval     `json:"timeline"`
	IntervalMS int64          `json:"interval_ms"`
}

// Quantiles are durations in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func quantiles(h *histogram) Quantiles {
	return Quantiles{ms(h.quantile(0.5)), ms(h.quantile(0.95)), ms(h.quantile(0.99)), ms(h.worst)}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Phase is a part of the run. Requests are counted by their arrival, attempts by their dispatch.
type Phase struct {
	Name     string    `json:"name"` // before, during, after; or all, where there is no trouble
	Requests int       `json:"requests"`
	Answered int       `json:"answered"`
	Attempts int       `json:"attempts"`
	Wasted   int       `json:"wasted"`
	Cost     float64   `json:"cost_usd"`
	Added    Quantiles `json:"added_ms"`
	First    Quantiles `json:"first_content_ms"`
}

// Share is the part of the requests that was answered, in words.
func (p Phase) Share() string {
	if p.Requests == 0 {
		return "-"
	}
	return percent(float64(p.Answered) / float64(p.Requests))
}

// TargetReport is what became of one target's attempts.
type TargetReport struct {
	Provider   string         `json:"provider"`
	Connection string         `json:"connection"`
	Model      string         `json:"model"`
	Attempts   int            `json:"attempts"`
	Answered   int            `json:"answered"`
	Wasted     int            `json:"wasted"`
	Cost       float64        `json:"cost_usd"`
	Kinds      map[string]int `json:"failures"` // by kind
}

// Key returns the target's names.
func (t TargetReport) Key() resilience.Key {
	return resilience.Key{Provider: t.Provider, Connection: t.Connection, Model: t.Model}
}

// Trouble is one event of the schedule and what it cost.
type Trouble struct {
	What   string `json:"what"`
	FromMS int64  `json:"from_ms"`
	ToMS   int64  `json:"to_ms"`
	// SwitchMS is how long after its beginning the traffic was away from it: from then on for two
	// seconds hardly an attempt went there. Nil: it never was, or had never been there.
	SwitchMS *int64 `json:"switch_ms"`
	// ReturnMS is how long after its end the traffic was back: at half of what it was before. Nil:
	// it never was, or that cannot be told.
	ReturnMS *int64 `json:"return_ms"`
	// Untold says that nothing could come back: nothing had been there before, or the run ends with it.
	Untold bool `json:"return_untold,omitempty"`
	// Unmet says that no attempt of the whole run went to what it is of, or that no request came meanwhile.
	Unmet  bool `json:"unmet,omitempty"`
	Wasted int  `json:"wasted"` // attempts on it, during it
}

// Away is how long it took until the traffic was away, in words.
func (t Trouble) Away() string {
	if t.Unmet {
		return "-"
	}
	return after(t.SwitchMS)
}

// Name is what it is, and that nobody met it.
func (t Trouble) Name() string {
	if t.Unmet {
		return t.What + " (not met)"
	}
	return t.What
}

// Back is how long it took until the traffic was back, in words.
func (t Trouble) Back() string {
	if t.Untold {
		return "-"
	}
	return after(t.ReturnMS)
}

// Exclusion is how long something was out.
type Exclusion struct {
	Node   int    `json:"node"`
	Layer  string `json:"layer"`
	Key    string `json:"key"`
	Kind   string `json:"kind"`
	FromMS int64  `json:"from_ms"`
	ToMS   int64  `json:"to_ms"`
	// Open says that it lasted beyond the end of the run.
	Open bool `json:"open"`
}

// Interval is one piece of the timeline.
type Interval struct {
	FromMS   int64 `json:"from_ms"`
	Requests int   `json:"requests"`
	Answered int   `json:"answered"`
	Broken   int   `json:"broken"`
	Failed   int   `json:"failed"`
	Attempts int   `json:"attempts"`
	Wasted   int   `json:"wasted"`
	// AddedP99 and FirstP99 are in milliseconds, of the requests that came in it.
	AddedP99 float64 `json:"added_p99_ms"`
	FirstP99 float64 `json:"first_content_p99_ms"`
	Cost     float64 `json:"cost_usd"` // of the attempts that were sent in it
	// By has the answers by provider.
	By map[string]int `json:"answered_by"`
}
