// Package alert tells people over webhooks what they should know at once: a circuit breaker that opened, a connection
// in quarantine, a combo without any target, a store or cluster in trouble; and when each is over.
//
// It looks at the engine's view after its events, so that it decides nothing by itself, and nothing waits for it. No
// secret, prompt or answer is in what it sends.
package alert

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"omniroute/internal/config"
	"omniroute/resilience"
)

const (
	// pace is how often at most the view is looked at, look how often while a combo is without target: a cooldown
	// that ends by its time makes no event.
	pace = time.Second
	look = 5 * time.Second
)

// Alerter watches an engine and sends. It is safe for concurrent use.
type Alerter struct {
	engine  *resilience.Engine
	log     *slog.Logger
	client  *http.Client
	gateway string
	counts  counts

	mu        sync.Mutex
	receivers []*receiver
	leaving   []*receiver // that a configuration no longer has; what waits for them is still delivered

	desk   desk // the loop's
	signal chan struct{}
	stop   chan struct{}
	done   chan struct{}
	cut    context.CancelFunc // ends deliveries
	life   context.Context
	unhear func()
}

// New returns an Alerter. What the engine says now is taken for known.
func New(e *resilience.Engine, log *slog.Logger) *Alerter {
	host, _ := os.Hostname() // without a name messages have none
	a := &Alerter{
		engine: e, log: log, gateway: host, signal: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
		},
	}
	a.life, a.cut = context.WithCancel(context.Background())
	return a
}

// Start begins to watch. The state must have been loaded, and Configure called.
func (a *Alerter) Start() {
	a.desk.begin(a.conditions(), time.Now())
	a.unhear = a.engine.Subscribe(func(resilience.Event) { a.nudge() })
	go a.run()
}

// nudge makes the loop look at the engine soon.
func (a *Alerter) nudge() {
	select {
	case a.signal <- struct{}{}:
	default:
	}
}

// Configure takes the receivers from a configuration. Receivers that stay keep what waits for them; what waits
// for others is still delivered.
func (a *Alerter) Configure(cfg *config.Config) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.receivers
	a.receivers = nil
	for _, of := range cfg.Alerts {
		i := slices.IndexFunc(old, func(r *receiver) bool { return r.of.Equal(of) })
		if i >= 0 {
			a.receivers = append(a.receivers, old[i])
			old = slices.Delete(slices.Clone(old), i, i+1)
			continue
		}
		a.receivers = append(a.receivers, newReceiver(a.life, of, a.client, a.log, &a.counts))
	}
	for _, r := range old {
		r.finish()
	}
	a.leaving = append(slices.DeleteFunc(a.leaving, (*receiver).over), old...)
	a.nudge() // what has gone is over
}

// Counts returns how many messages were delivered, and how many were given up.
func (a *Alerter) Counts() (sent, dropped int64) {
	return a.counts.sent.Load(), a.counts.dropped.Load()
}

// Stop tells what has not been told, and delivers what waits until ctx ends.
func (a *Alerter) Stop(ctx context.Context) {
	if a.unhear != nil {
		a.unhear()
		close(a.stop)
		<-a.done
	}
	a.mu.Lock()
	all := append(slices.Clone(a.receivers), a.leaving...)
	a.mu.Unlock()
	for _, r := range all {
		r.finish()
	}
	over := context.AfterFunc(ctx, a.cut)
	for _, r := range all {
		<-r.done
	}
	over()
	a.cut()
	a.client.CloseIdleConnections()
}

// conditions returns how everything is that alerts are about.
func (a *Alerter) conditions() map[Subject]Condition {
	s := a.engine.Overview()
	all := map[Subject]Condition{}
	breaker := func(provider, connection string, b *resilience.BreakerStatus) {
		c := Condition{Bad: b.State == resilience.Open || b.State == resilience.HalfOpen}
		if c.Bad && b.LastKind != nil {
			c.Kind = b.LastKind.String()
		}
		all[Subject{Event: "breaker", Provider: provider, Connection: connection}] = c
	}
	for i := range s.Providers {
		p := &s.Providers[i]
		breaker(p.ID, "", &p.Breaker)
		for j := range p.Connections {
			conn := &p.Connections[j]
			if conn.Breaker != nil {
				breaker(p.ID, conn.ID, conn.Breaker)
			}
			c := Condition{Bad: conn.State == resilience.Quarantined}
			if c.Bad && conn.Kind != nil {
				c.Kind = conn.Kind.String()
			}
			all[Subject{Event: "quarantine", Provider: p.ID, Connection: conn.ID}] = c
		}
	}
	all[Subject{Event: "store"}] = Condition{Bad: s.Persistence == "degraded"}
	all[Subject{Event: "cluster"}] = Condition{Bad: a.engine.Cluster().State == resilience.ClusterIsolated}
	for _, combo := range s.Combos {
		c := Condition{Bad: !combo.Available}
		if combo.Kind != nil {
			c.Kind = combo.Kind.String()
		}
		all[Subject{Event: "no_target", Combo: combo.ID}] = c
	}
	return all
}

func (a *Alerter) run() {
	defer close(a.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-a.stop:
			a.tell(append(a.desk.update(a.conditions(), time.Now()), a.desk.due(time.Now(), true)...))
			return
		case <-a.signal:
		case <-timer.C:
		}
		all := a.conditions()
		now := time.Now()
		a.tell(a.desk.update(all, now))
		timer.Reset(a.pause(all, now))
		select { // whatever comes meanwhile is looked at together
		case <-a.stop:
			a.tell(append(a.desk.update(a.conditions(), time.Now()), a.desk.due(time.Now(), true)...))
			return
		case <-time.After(pace):
		}
	}
}

// pause is how long nothing need be looked at without an event.
func (a *Alerter) pause(all map[Subject]Condition, now time.Time) time.Duration {
	d := time.Hour
	if next, waits := a.desk.next(); waits {
		d = max(next.Sub(now), pace)
	}
	for s, c := range all {
		if s.Combo != "" && c.Bad {
			d = min(d, look)
		}
	}
	return d
}

func (a *Alerter) tell(reports []report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range reports {
		m := messageOf(r, a.gateway)
		for _, to := range a.receivers {
			to.put(m)
		}
	}
}
