package admin

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"omniroute/internal/config"
	"omniroute/internal/loopback"
)

const (
	// Wrong tokens: so many at once from one address, and then one in each pause; and the same for all
	// other machines together.
	burstOne, pauseOne = 5, 12 * time.Second
	burstAll, pauseAll = 60, time.Second

	// knownFor is how long an address that gave the right token does not share the guesses of all: whoever
	// guesses from everywhere must not keep operators out.
	knownFor = 12 * time.Hour

	maxAddresses = 4096
)

// guesses bounds how often the admin token may be guessed, in whatever way. A right token costs nothing, and
// the same wrong one again is no other guess: an old script must not keep its neighbours out. It is safe for
// concurrent use.
type guesses struct {
	mu  sync.Mutex
	all bucket
	// rest is shared by those who come when there are too many addresses to tell apart.
	rest address
	one  map[netip.Addr]*address
}

// address is what is known of one peer.
type address struct {
	bucket
	known time.Time // when it last gave the right token
	wrong string    // the last wrong one, hashed together with the right one of that time
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

// guess is what became of a try.
type guess uint8

const (
	rightToken guess = iota
	wrongToken
	sameWrongToken
	notLooked // no guess was there
)

// try looks whether what a peer presents is the token, or returns how long the peer must wait before anybody looks.
func (g *guesses) try(token config.Secret, peer, presented string, now time.Time) (guess, time.Duration) {
	h := hmac.New(sha256.New, []byte(token.Reveal())) // what is wrong today may be right after a reload
	h.Write([]byte(presented))
	hash := string(h.Sum(nil))
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.of(peer, now)
	if a != &g.rest && a.wrong == hash {
		return sameWrongToken, 0
	}
	alone := loopback.Peer(peer) || now.Sub(a.known) < knownFor
	wait := a.wait(now, burstOne, pauseOne)
	if !alone {
		wait = max(wait, g.all.wait(now, burstAll, pauseAll))
	}
	if wait > 0 {
		return notLooked, wait
	}
	if token.Matches(presented) {
		if a != &g.rest {
			a.known = now
		}
		return rightToken, 0
	}
	a.wrong = hash
	a.take(now, pauseOne)
	if !alone {
		g.all.take(now, pauseAll)
	}
	return wrongToken, 0
}

// of returns what is known of a peer. Who owns an IPv6 address owns all of its /64.
func (g *guesses) of(peer string, now time.Time) *address {
	var addr netip.Addr
	if ap, err := netip.ParseAddrPort(peer); err == nil {
		addr = ap.Addr().Unmap()
		if addr.Is6() {
			if p, err := addr.WithZone("").Prefix(64); err == nil {
				addr = p.Addr()
			}
		}
	}
	if a := g.one[addr]; a != nil {
		return a
	}
	if g.one == nil {
		g.one = map[netip.Addr]*address{}
	}
	if len(g.one) >= maxAddresses {
		for at, a := range g.one {
			if !a.free.After(now) && now.Sub(a.known) >= knownFor {
				delete(g.one, at)
			}
		}
	}
	if len(g.one) >= maxAddresses {
		return &g.rest
	}
	a := &address{}
	g.one[addr] = a
	return a
}
