package admin

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"omniroute/failover"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// maxStrangers is how many requests without a client's key are remembered.
const maxStrangers = 100

// stories is a ring of the last requests.
type stories struct {
	mu   sync.Mutex
	kept []telemetry.Story
	next int
}

func newStories(n int) *stories { return &stories{kept: make([]telemetry.Story, 0, n)} }

func (s *stories) add(story telemetry.Story) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) < cap(s.kept) {
		s.kept = append(s.kept, story)
		return
	}
	s.kept[s.next] = story
	s.next = (s.next + 1) % len(s.kept)
}

// each calls f with every story, newest first, until it returns false.
func (s *stories) each(f func(telemetry.Story) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.kept {
		if !f(s.kept[(s.next-1-i+2*len(s.kept))%len(s.kept)]) {
			return
		}
	}
}

// Attempt is one upstream call of a request.
type Attempt struct {
	RequestID  string               `json:"request_id"`
	At         resilience.Timestamp `json:"at"`
	Provider   string               `json:"provider"`
	Connection string               `json:"connection"`
	Model      string               `json:"model"`
	Outcome    failover.Outcome     `json:"outcome"`
	// Status is the upstream's HTTP status, 0 where there was none.
	Status int `json:"status"`
	// Scope, Kind, Rule and Evidence are of the verdict; null and empty for an answer.
	Scope    *resilience.Scope `json:"scope"`
	Kind     *resilience.Kind  `json:"kind"`
	Rule     string            `json:"rule,omitempty"`
	Evidence string            `json:"evidence,omitempty"`
	// RetryAfterMs is what the upstream said, before any cap; 0 when it said nothing.
	RetryAfterMs int64 `json:"retry_after_ms"`
	Probe        bool  `json:"probe"`
	// LastResort says that its target was out, and was asked because nothing else was left.
	LastResort bool `json:"last_resort,omitempty"`
	// Hedge says that it was started beside one that was slow.
	Hedge          bool  `json:"hedge"`
	Resumes        bool  `json:"resumes,omitempty"` // it was to finish an answer that broke off
	FirstContentMs int64 `json:"first_content_ms"`
	DurationMs     int64 `json:"duration_ms"`
}

// Skipped is a target that a failed request did not try.
type Skipped struct {
	Provider   string `json:"provider"`
	Connection string `json:"connection"`
	Model      string `json:"model"`
	// Unfit says that it could do no better with this request; the rest is of its exclusion.
	Unfit bool `json:"unfit,omitempty"`
	// Reason says why it is unfit, or the rule or an operator's word behind the exclusion.
	Reason       string               `json:"reason,omitempty"`
	Layer        *resilience.Layer    `json:"layer"`
	Kind         *resilience.Kind     `json:"kind"`
	Until        resilience.Timestamp `json:"until"`
	RetryAfterMs int64                `json:"retry_after_ms"`
}

// Request is the answer to GET /admin/v1/requests/{id}.
type Request struct {
	ID             string               `json:"id"`
	At             resilience.Timestamp `json:"at"`
	Dialect        string               `json:"dialect"`
	Method         string               `json:"method"`
	Path           string               `json:"path"`
	Model          string               `json:"model"`
	Route          string               `json:"route"`
	Stream         bool                 `json:"stream"`
	Status         int                  `json:"status"`
	Code           string               `json:"code,omitempty"`
	Broke          string               `json:"broke,omitempty"`
	DurationMs     int64                `json:"duration_ms"`
	FirstContentMs int64                `json:"first_content_ms"`
	// Session is "home", "new" or "detour" where the request named a session.
	Session  string    `json:"session,omitempty"`
	Recovery *Recovery `json:"recovery,omitempty"`
	Usage    *Usage    `json:"usage"` // null where the upstream said nothing
	Attempts []Attempt `json:"attempts"`
	Skipped  []Skipped `json:"skipped"`
}

// Recovery is what became of an answer that broke off, where the combo has such finished by another
// attempt.
type Recovery struct {
	Outcome telemetry.RecoveryOutcome `json:"outcome"`
	Way     string                    `json:"way,omitempty"`
	// Bytes is how much of the text the client had.
	Bytes int    `json:"bytes"`
	Why   string `json:"why,omitempty"`
}

// Usage is what the upstream said of tokens.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Reasoning  int64 `json:"reasoning"`
}

// limitOf reads the one parameter of a list.
func limitOf(r *http.Request, usual, most int) (int, error) {
	limit := usual
	for name, values := range r.URL.Query() {
		n, err := strconv.Atoi(values[0])
		switch {
		case name != "limit":
			return 0, invalid("unknown parameter %q; the only one is limit", shown(name))
		case err != nil || n < 1 || n > most:
			return 0, invalid("limit %q is no number from 1 to %d", shown(values[0]), most)
		}
		limit = n
	}
	return limit, nil
}

func (a *Admin) attempts(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r, 100, 10_000)
	if err != nil {
		return err
	}
	out := []Attempt{}
	a.stories.each(func(s telemetry.Story) bool {
		for i := len(s.Attempts) - 1; i >= 0 && len(out) < limit; i-- {
			out = append(out, attemptOf(s.ID, s.Attempts[i]))
		}
		return len(out) < limit
	})
	writeJSON(w, http.StatusOK, map[string][]Attempt{"attempts": out})
	return nil
}

// Stories calls f with the requests that are remembered, newest first, until it returns false. f must
// not change what it gets.
func (a *Admin) Stories(f func(telemetry.Story) bool) { a.stories.each(f) }

func (a *Admin) request(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var found *telemetry.Story
	for _, kept := range []*stories{a.stories, a.strangers} {
		kept.each(func(s telemetry.Story) bool {
			if found == nil && s.ID == id {
				found = &s
			}
			return found == nil
		})
	}
	if found == nil {
		return refuse(http.StatusNotFound, "not_found", "no request %q is remembered; the last %d that are over are", shown(id), a.o.Stories)
	}
	writeJSON(w, http.StatusOK, requestOf(*found))
	return nil
}

func requestOf(s telemetry.Story) Request {
	q := Request{
		ID: s.ID, At: resilience.Timestamp{Time: s.At}, Dialect: s.Dialect, Method: s.Method, Path: s.Path, Model: s.Model, Route: s.Route,
		Stream: s.Stream, Session: s.Session, Status: s.Status, Code: s.Code, Broke: s.Broke, DurationMs: ms(s.Duration), FirstContentMs: ms(s.FirstContent),
		Attempts: []Attempt{}, Skipped: []Skipped{},
	}
	if c := s.Recovery; c != nil {
		q.Recovery = &Recovery{c.Outcome, c.Way, c.Bytes, c.Why}
	}
	if u := s.Usage; u.Known {
		q.Usage = &Usage{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning}
	}
	for _, rec := range s.Attempts {
		q.Attempts = append(q.Attempts, attemptOf(s.ID, rec))
	}
	for _, skip := range s.Skipped {
		k := Skipped{Provider: skip.Key.Provider, Connection: skip.Key.Connection, Model: skip.Key.Model, Unfit: skip.Unfit, Reason: skip.Reason}
		if !skip.Unfit {
			k.Layer, k.Until, k.RetryAfterMs = &skip.Layer, resilience.Timestamp{Time: skip.Until}, ms(skip.RetryAfter)
			if skip.HasKind() {
				k.Kind = &skip.Kind
			}
		}
		q.Skipped = append(q.Skipped, k)
	}
	return q
}

func attemptOf(id string, rec failover.Record) Attempt {
	t := Attempt{
		RequestID: id, At: resilience.Timestamp{Time: rec.At}, Provider: rec.Key.Provider, Connection: rec.Key.Connection, Model: rec.Key.Model,
		Outcome: rec.Outcome, Status: rec.Status, Probe: rec.Probe, LastResort: rec.LastResort, Hedge: rec.Hedge, Resumes: rec.Resumes, FirstContentMs: ms(rec.FirstContent), DurationMs: ms(rec.Duration),
	}
	if v := rec.Verdict; v.Scope != resilience.ScopeNone {
		t.Scope, t.Kind, t.Rule, t.Evidence, t.RetryAfterMs = &v.Scope, &v.Kind, v.Rule, v.Evidence, ms(v.RetryAfter)
	}
	return t
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
