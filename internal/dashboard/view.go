package dashboard

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"omniroute/failover"
	"omniroute/internal/admin"
	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// view is all that the page shows, as documents under keys that say what they are: "p:acme" is a
// provider, "c:acme/main" a connection, "r:…" a request. Two views are compared document by document,
// so that what has not changed is not sent again. No document holds a time that is left: the page
// counts down to a deadline by itself.
type view map[string]json.RawMessage

func (v view) put(key string, doc any) {
	b, err := json.Marshal(doc)
	if err != nil { // only a bug: they are our own types
		return
	}
	v[key] = b
}

type providerDoc struct {
	ID          string               `json:"id"`
	Order       int                  `json:"order"`
	Available   bool                 `json:"available"`
	AvailableAt resilience.Timestamp `json:"available_at"`
	Breaker     *breakerDoc          `json:"breaker"`
	Connections int                  `json:"connections"`
	admin.Asked                      // in the last five minutes
}

type breakerDoc struct {
	State         resilience.BreakerState `json:"state"`
	Failures      int                     `json:"failures"`
	Threshold     int                     `json:"failure_threshold"`
	Cycles        int                     `json:"open_cycles"`
	Kind          *resilience.Kind        `json:"kind"`
	LastFailureAt resilience.Timestamp    `json:"last_failure_at"`
	OpenedAt      resilience.Timestamp    `json:"opened_at"`
	ResetAt       resilience.Timestamp    `json:"reset_at"`
	NextAt        resilience.Timestamp    `json:"next_at"` // when the next request may pass
}

type connectionDoc struct {
	Provider  string                     `json:"provider"`
	ID        string                     `json:"id"`
	Order     int                        `json:"order"`
	State     resilience.ConnectionState `json:"state"`
	Kind      *resilience.Kind           `json:"kind"`
	Until     resilience.Timestamp       `json:"until"`
	Level     int                        `json:"level"`
	Cooldown  int64                      `json:"cooldown_ms"`
	LastError *resilience.LastError      `json:"last_error"`
	Models    []string                   `json:"models,omitempty"`
	Breaker   *breakerDoc                `json:"breaker,omitempty"`
}

type lockoutDoc struct {
	Provider   string               `json:"provider"`
	Connection string               `json:"connection"`
	Model      string               `json:"model"`
	Kind       resilience.Kind      `json:"kind"`
	Failures   int                  `json:"failures"`
	Locked     bool                 `json:"locked"`
	Until      resilience.Timestamp `json:"until"`
}

// requestDoc is a request in the list; the rest of its story is asked for when somebody looks.
type requestDoc struct {
	ID           string               `json:"id"`
	At           resilience.Timestamp `json:"at"`
	Model        string               `json:"model"`
	Route        string               `json:"route"`
	Stream       bool                 `json:"stream"`
	Status       int                  `json:"status"`
	Code         string               `json:"code,omitempty"`
	Broke        string               `json:"broke,omitempty"`
	Duration     int64                `json:"duration_ms"`
	FirstContent int64                `json:"first_content_ms"`
	Attempts     []attemptDoc         `json:"attempts"`
}

type attemptDoc struct {
	Target   string           `json:"target"`
	After    int64            `json:"after_ms"` // since the request came
	First    int64            `json:"first_content_ms"`
	Duration int64            `json:"duration_ms"`
	Outcome  failover.Outcome `json:"outcome"`
	Status   int              `json:"status"`
	Kind     *resilience.Kind `json:"kind"`
	Probe    bool             `json:"probe,omitempty"`
}

// state puts in what is out.
func (f *feed) state(v view, st admin.Status, asked map[string]admin.Asked) {
	now := st.Now.Time
	for i := range st.Providers {
		p := &st.Providers[i]
		v.put("p:"+p.ID, providerDoc{
			ID: p.ID, Order: i, Available: p.Available, AvailableAt: f.steady("p:"+p.ID, p.AvailableAt.Time),
			Breaker: f.breaker("b:"+p.ID, &p.Breaker, now), Connections: len(p.Connections), Asked: asked[p.ID],
		})
		for j := range p.Connections {
			c := &p.Connections[j]
			key := "c:" + p.ID + "/" + c.ID
			doc := connectionDoc{
				Provider: p.ID, ID: c.ID, Order: j, State: c.State, Kind: c.Kind, Until: f.steady(key, c.RateLimitedUntil.Time),
				Level: c.BackoffLevel, Cooldown: c.CooldownMs, LastError: c.LastError, Models: c.Models,
			}
			if c.Breaker != nil {
				doc.Breaker = f.breaker("b:"+p.ID+"/"+c.ID, c.Breaker, now)
			}
			v.put(key, doc)
		}
	}
	for _, c := range st.Combos {
		c.AvailableAt = f.steady("k:"+c.ID, c.AvailableAt.Time)
		v.put("k:"+c.ID, c)
	}
	for _, l := range st.Lockouts {
		key := "l:" + l.Provider + "/" + l.Connection + "/" + l.Model
		v.put(key, lockoutDoc{l.Provider, l.Connection, l.Model, l.Kind, l.Failures, l.Locked, f.steady(key, l.LockedUntil.Time)})
	}
	for _, o := range st.Operator {
		key := "o:" + o.Provider + "/" + o.Connection + "/" + o.Model
		o.Until = f.steady(key, o.Until.Time)
		v.put(key, o)
	}
	nodes := slices.Clone(st.Nodes)
	for i := range nodes {
		nodes[i].AgeMs = 0 // runs by itself
	}
	v.put("nodes", nodes)
	v.put("places", slices.DeleteFunc(slices.Clone(st.Concurrency), func(o route.Occupation) bool { return o.MaxConcurrent == 0 }))
	v.put("headroom", st.Headroom)
	// What is left is of the gateway itself: few members, whatever a later version adds.
	st.Now, st.Providers, st.Combos, st.Lockouts, st.Operator = resilience.Timestamp{}, nil, nil, nil, nil
	st.Nodes, st.Concurrency, st.Headroom = nil, nil, nil
	v.put("meta", st)
}

func (f *feed) breaker(key string, b *resilience.BreakerStatus, now time.Time) *breakerDoc {
	d := &breakerDoc{
		State: b.State, Failures: b.Failures, Threshold: b.FailureThreshold, Cycles: b.OpenCycles, Kind: b.LastKind,
		LastFailureAt: f.steady(key+" failed", b.LastFailureAt.Time), OpenedAt: f.steady(key+" opened", b.OpenedAt.Time),
		ResetAt: f.steady(key+" reset", b.ResetAt.Time),
	}
	if b.RetryAfterMs > 0 {
		d.NextAt = f.steady(key, now.Add(time.Duration(b.RetryAfterMs)*time.Millisecond))
	}
	return d
}

// traffic puts in what happened in the last hour.
func traffic(v view, s admin.Series) {
	v.put("recent", s.Recent)
	for _, x := range s.Steps {
		v.put("s:"+strconv.FormatInt(x.At.UnixMilli(), 10), x)
	}
	for _, l := range s.Timelines {
		v.put("t:"+l.Layer.String()+":"+l.Key.String(), l)
	}
}

const (
	// shownLatest are the last requests, shownNotable the last that did not go straight.
	shownLatest, shownNotable = 40, 40
	// maxNames bounds how many models are offered to the explain form.
	maxNames = 500
)

// requests puts in the last requests, and the last that failed or needed more than one attempt: in
// heavy traffic those would drown.
func requests(v view, each func(func(telemetry.Story) bool)) {
	var shown []telemetry.Story // written out later, since who keeps the stories is held up meanwhile
	latest, notable := 0, 0
	each(func(s telemetry.Story) bool {
		odd := s.Status >= 400 || s.Broke != "" || len(s.Attempts) > 1
		if latest < shownLatest || odd && notable < shownNotable {
			shown = append(shown, s)
		}
		latest++
		if odd {
			notable++
		}
		return latest < shownLatest || notable < shownNotable
	})
	for i := range shown {
		s := &shown[i]
		// A client may choose its id and choose it twice.
		v.put("r:"+s.ID+"@"+strconv.FormatInt(s.At.UnixNano(), 36), requestOf(s))
	}
}

func requestOf(s *telemetry.Story) requestDoc {
	d := requestDoc{
		ID: s.ID, At: resilience.Timestamp{Time: s.At}, Model: s.Model, Route: s.Route, Stream: s.Stream, Status: s.Status,
		Code: s.Code, Broke: s.Broke, Duration: s.Duration.Milliseconds(), FirstContent: s.FirstContent.Milliseconds(),
		Attempts: make([]attemptDoc, 0, len(s.Attempts)),
	}
	for i := range s.Attempts {
		a := &s.Attempts[i]
		x := attemptDoc{
			Target: a.Key.String(), After: a.At.Sub(s.At).Milliseconds(), First: a.FirstContent.Milliseconds(),
			Duration: a.Duration.Milliseconds(), Outcome: a.Outcome, Status: a.Status, Probe: a.Probe,
		}
		if a.Verdict.Scope != resilience.ScopeNone {
			x.Kind = &a.Verdict.Kind
		}
		d.Attempts = append(d.Attempts, x)
	}
	return d
}

// names puts in what the explain form offers.
func names(v view, cfg *config.Config) {
	var out []string
	for _, c := range cfg.Combos {
		out = append(out, c.Name)
	}
	for _, p := range cfg.Providers {
		for _, m := range p.Models {
			out = append(out, p.ID+"/"+m.ID)
		}
	}
	v.put("names", out[:min(len(out), maxNames)])
}
