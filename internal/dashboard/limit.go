package dashboard

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// Wrong tokens: so many at once from one address, and then one in each pause; and the same for all
	// addresses together.
	burstOne, pauseOne = 5, 12 * time.Second
	burstAll, pauseAll = 60, time.Second

	maxAddresses = 4096
)

// limiter bounds guesses of the admin token. It is safe for concurrent use.
type limiter struct {
	mu  sync.Mutex
	all bucket
	// rest is shared by those who come when there are too many addresses to tell apart.
	rest bucket
	one  map[netip.Addr]*bucket
}

// bucket holds guesses: free says when all of them are there again.
type bucket struct{ free time.Time }

// wait returns how long until a guess is there.
func (b *bucket) wait(now time.Time, burst int, pause time.Duration) time.Duration {
	if !b.free.After(now) {
		return 0
	}
	return max(b.free.Sub(now)-time.Duration(burst-1)*pause, 0)
}

func (b *bucket) take(now time.Time, pause time.Duration) {
	if b.free.Before(now) {
		b.free = now
	}
	b.free = b.free.Add(pause)
}

// take takes a guess for a peer, or returns how long it must wait for one.
func (l *limiter) take(peer string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(peer, now)
	if w := max(b.wait(now, burstOne, pauseOne), l.all.wait(now, burstAll, pauseAll)); w > 0 {
		return w
	}
	b.take(now, pauseOne)
	l.all.take(now, pauseAll)
	return 0
}

// giveBack returns a guess that was right.
func (l *limiter) giveBack(peer string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(peer, now)
	b.free = b.free.Add(-pauseOne)
	l.all.free = l.all.free.Add(-pauseAll)
}

// of returns the bucket of a peer. Who owns an IPv6 address owns all of its /64.
func (l *limiter) of(peer string, now time.Time) *bucket {
	var addr netip.Addr
	if ap, err := netip.ParseAddrPort(peer); err == nil {
		addr = ap.Addr().Unmap()
		if addr.Is6() {
			if p, err := addr.WithZone("").Prefix(64); err == nil {
				addr = p.Addr()
			}
		}
	}
	if b := l.one[addr]; b != nil {
		return b
	}
	if l.one == nil {
		l.one = map[netip.Addr]*bucket{}
	}
	if len(l.one) >= maxAddresses {
		for a, b := range l.one {
			if !b.free.After(now) {
				delete(l.one, a)
			}
		}
	}
	if len(l.one) >= maxAddresses {
		return &l.rest
	}
	b := &bucket{}
	l.one[addr] = b
	return b
}
