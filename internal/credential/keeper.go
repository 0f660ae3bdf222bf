package credential

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"omniroute/internal/config"
	"omniroute/resilience"
)

const (
	// sooner is how long before its end a key is replaced, at most a fifth of what it has left.
	sooner = time.Minute
	// A run that failed is repeated after firstRetry, then after twice as long each time, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Keeper keeps the keys of connections with an api_key_command fresh. It is safe for concurrent use.
type Keeper struct {
	log     *slog.Logger
	changed func()
	run     func(context.Context, *config.Command) ([]byte, error)

	mu      sync.Mutex
	keys    map[resilience.Key]*key
	stopped bool
	running sync.WaitGroup
}

// New returns a Keeper. changed is called, from a goroutine of the keeper's and one at a time for each key, whenever a
// key is another one, and whenever a connection is still without one.
func New(log *slog.Logger, changed func()) *Keeper {
	return &Keeper{log: log, changed: changed, run: execute, keys: map[resilience.Key]*key{}}
}

// key is one connection's.
type key struct {
	of      resilience.Key
	command *config.Command
	live    config.Credential
	next    time.Duration // until the next run
	failed  int           // runs in a row
	stop    context.CancelFunc
}

// Adopt gives the connections of a configuration the keys that are known, runs the commands that are new, all at once,
// and returns when each has ended. Keys of connections that are gone are dropped. It is called before the configuration
// is used.
func (k *Keeper) Adopt(ctx context.Context, cfg *config.Config) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wanted := map[resilience.Key]*key{}
	var first sync.WaitGroup
	for _, p := range cfg.Providers {
		for _, c := range p.Connections {
			if c.Command == nil {
				continue
			}
			of := resilience.Key{Provider: p.ID, Connection: c.ID}
			one := k.keys[of]
			if one == nil || !one.command.Equal(c.Command) {
				one = &key{of: of, command: c.Command}
				first.Go(func() { k.refresh(ctx, one) })
			}
			wanted[of] = one
			c.Provide(&one.live)
		}
	}
	first.Wait()
	for of, old := range k.keys {
		if wanted[of] != old {
			old.stop()
		}
	}
	k.keys = wanted
	for _, one := range wanted {
		if one.stop == nil && !k.stopped {
			var alive context.Context
			alive, one.stop = context.WithCancel(context.Background())
			k.running.Go(func() { k.keep(alive, one) })
		}
	}
}

// Missing lists the connections that are without a key.
func (k *Keeper) Missing() (all []resilience.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for of, one := range k.keys {
		if one.live.Get().Empty() {
			all = append(all, of)
		}
	}
	return all
}

// Stop ends the refreshing and waits for commands that run to be killed.
func (k *Keeper) Stop() {
	k.mu.Lock()
	k.stopped = true
	for _, one := range k.keys {
		if one.stop != nil {
			one.stop()
		}
	}
	k.mu.Unlock()
	k.running.Wait()
}

// keep refreshes a key whenever it is time.
func (k *Keeper) keep(ctx context.Context, one *key) {
	timer := time.NewTimer(one.next)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if news := k.refresh(ctx, one); ctx.Err() == nil && (news || one.live.Get().Empty()) {
			k.changed()
		}
		timer.Reset(one.next)
	}
}

// refresh runs the command once and reports whether the key is another one now.
func (k *Keeper) refresh(ctx context.Context, one *key) bool {
	out, err := k.run(ctx, one.command)
	var a answer
	if err == nil {
		a, err = read(out)
	}
	if err != nil {
		one.next = min(firstRetry<<min(one.failed, 10), lastRetry)
		one.failed++
		if ctx.Err() == nil {
			k.log.Warn("the command for a key has failed; the key that was there stays in use", "connection", one.of.String(), "program", one.command.Args[0],
				"error", err, "in_a_row", one.failed, "again_in", one.next)
		}
		return false
	}
	one.failed, one.next = 0, one.command.Refresh
	if !a.ends.IsZero() {
		left := time.Until(a.ends)
		one.next = max(min(one.next, left-min(sooner, left/5)), firstRetry)
	}
	if one.live.Get().Equal(a.key) {
		return false
	}
	one.live.Set(a.key)
	k.log.Info("a command has given a new key", "connection", one.of.String(), "used_for", one.next)
	return true
}

// Fill gives each connection of a configuration that has a command a key from one run of it, for those who look once.
// It returns what went wrong, by connection.
func Fill(ctx context.Context, cfg *config.Config) map[resilience.Key]error {
	failed := map[resilience.Key]error{}
	for _, p := range cfg.Providers {
		for _, c := range p.Connections {
			if c.Command == nil {
				continue
			}
			out, err := execute(ctx, c.Command)
			var a answer
			if err == nil {
				a, err = read(out)
			}
			if err != nil {
				failed[resilience.Key{Provider: p.ID, Connection: c.ID}] = err
				continue
			}
			live := new(config.Credential)
			live.Set(a.key)
			c.Provide(live)
		}
	}
	return failed
}
