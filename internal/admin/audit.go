package admin

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"omniroute/resilience"
)

const (
	// remembered is how many audits are kept in memory, for a store that keeps none or is away.
	remembered = 1000
	// auditTime bounds a call of the store, and retryAudit is how long after a failed one the next comes.
	auditTime  = 2 * time.Second
	retryAudit = 5 * time.Second
)

// trail is what operators did: in memory at once, and in the store as soon as that takes it. Nobody waits for the
// store but who asks for the trail. It is safe for concurrent use.
type trail struct {
	store resilience.Auditor // nil: memory alone
	log   *slog.Logger

	mu      sync.Mutex
	recent  []resilience.Audit // oldest first
	pending []resilience.Audit // of recent, those that the store has not taken
	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	closed  bool
}

func newTrail(store resilience.Auditor, log *slog.Logger) *trail {
	t := &trail{store: store, log: log, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if store == nil {
		close(t.done)
		return t
	}
	go t.write()
	return t
}

func (t *trail) add(a resilience.Audit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent = append(t.recent, a)
	if n := len(t.recent) - remembered; n > 0 {
		t.recent = slices.Delete(t.recent, 0, n)
	}
	if t.store == nil || t.closed {
		return
	}
	t.pending = append(t.pending, a)
	if n := len(t.pending) - remembered; n > 0 {
		t.pending = slices.Delete(t.pending, 0, n)
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// write hands the store what is pending, in order.
func (t *trail) write() {
	defer close(t.done)
	retry := time.NewTimer(retryAudit)
	defer retry.Stop()
	told := false
	for last := false; !last; {
		select {
		case <-t.wake:
		case <-retry.C:
		case <-t.stop:
			last = true
		}
		for {
			t.mu.Lock()
			if len(t.pending) == 0 {
				t.mu.Unlock()
				break
			}
			a := t.pending[0]
			t.mu.Unlock()
			ctx, cancel := context.WithTimeout(context.Background(), auditTime)
			err := t.store.Record(ctx, a)
			cancel()
			if err != nil {
				if !told {
					t.log.Warn("what operators do is not saved; trying again", "error", err)
				}
				told = true
				retry.Reset(retryAudit)
				break
			}
			told = false
			t.mu.Lock()
			t.pending = t.pending[1:]
			t.mu.Unlock()
		}
	}
}

// close gives what is pending to the store once more. From then on memory alone is added to.
func (t *trail) close() {
	t.mu.Lock()
	again := t.closed
	t.closed = true
	t.mu.Unlock()
	if !again {
		close(t.stop)
	}
	<-t.done
}

// list returns at most limit audits, the newest first, and whether the store was asked in vain.
func (t *trail) list(ctx context.Context, limit int) (all []resilience.Audit, partial bool) {
	t.mu.Lock()
	recent, pending := slices.Clone(t.recent), slices.Clone(t.pending)
	t.mu.Unlock()
	slices.Reverse(recent)
	slices.Reverse(pending)
	if t.store != nil {
		ctx, cancel := context.WithTimeout(ctx, auditTime)
		defer cancel()
		stored, err := t.store.Audits(ctx, limit)
		if err == nil {
			all = slices.Concat(pending, stored)
			return all[:min(limit, len(all))], false
		}
	}
	return recent[:min(limit, len(recent))], t.store != nil
}

// Audits is the answer to GET /admin/v1/audit.
type Audits struct {
	Audits []resilience.Audit `json:"audits"` // newest first
	// Partial says that the store did not answer: these are what this gateway has seen since its start.
	Partial bool `json:"partial"`
}

// maxAudits bounds an answer.
const maxAudits = 1000

func (a *Admin) audits(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r, 100, maxAudits)
	if err != nil {
		return err
	}
	all, partial := a.trail.list(r.Context(), limit)
	if all == nil {
		all = []resilience.Audit{}
	}
	writeJSON(w, http.StatusOK, Audits{all, partial})
	return nil
}

// Note keeps what an operator did.
func (a *Admin) Note(actor, peer, action string, key resilience.Key, detail string) {
	a.trail.add(resilience.Audit{At: resilience.Timestamp{Time: time.Now()}, Actor: actor, Peer: peer, Action: action, Key: key, Detail: detail})
}

// signOut is what the trail calls the end of a session of the dashboard, and sessionOf stands before its name there.
const signOut, sessionOf = "sign_out", "session "

// SignOut keeps that a session of the dashboard has ended.
func (a *Admin) SignOut(peer, session string) {
	a.Note("dashboard", peer, signOut, resilience.Key{}, sessionOf+session)
}

// SignedOut returns the sessions that were signed out of since then, and when: in this process, before it, and at
// gateways that share its store. more says that a later call may tell of others.
func (a *Admin) SignedOut(ctx context.Context, since time.Time) (ended map[string]time.Time, more bool) {
	all, partial := a.trail.list(ctx, resilience.MaxAudits)
	ended = map[string]time.Time{}
	for _, x := range all {
		if id, ok := strings.CutPrefix(x.Detail, sessionOf); ok && x.Action == signOut && x.At.After(since) {
			ended[id] = x.At.Time
		}
	}
	return ended, partial || a.engine.Cluster().State != resilience.ClusterSingle
}

// CloseTrail hands the store what it has not taken. Call it before the store closes.
func (a *Admin) CloseTrail() { a.trail.close() }

// note is Note for a call of the API.
func (a *Admin) note(r *http.Request, action string, key resilience.Key, detail string) {
	actor := "token"
	switch {
	case r.Context().Value(opened{}) != nil:
		actor = "dashboard"
	case a.config().AdminToken.Empty():
		actor = "loopback"
	}
	a.Note(actor, r.RemoteAddr, action, key, detail)
}

// opened marks a request that came over Open.
type opened struct{}
