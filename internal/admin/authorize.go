package admin

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"omniroute/internal/loopback"
)

// authorize returns nil when the request may come in: with the token where one is set, else from
// this machine and by nobody else's wish.
func (a *Admin) authorize(w http.ResponseWriter, r *http.Request) error {
	if a.config().AdminToken.Empty() {
		return Local(r)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token != "" && strings.EqualFold(scheme, "bearer") {
		right, wait := a.Guess(r.RemoteAddr, token)
		if right {
			return nil
		}
		if wait > 0 {
			seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
			w.Header().Set("Retry-After", seconds)
			return refuse(http.StatusTooManyRequests, "too_many_tries", "too many wrong admin tokens have come; this one was not looked at; try again in %s seconds", seconds)
		}
	}
	return refuse(http.StatusUnauthorized, "unauthorized", "the admin token is missing or wrong; send the admin_token of the configuration as \"Authorization: Bearer TOKEN\"")
}

// Guess tells whether what a peer presents is the admin token. Those who guess are slowed down: with a wait above
// zero nobody has looked, and the peer may try again after that.
func (a *Admin) Guess(peer, presented string) (right bool, wait time.Duration) {
	got, wait := a.guesses.try(a.config().AdminToken, peer, presented, time.Now())
	if got == wrongToken {
		a.log.Warn("a wrong admin token was given", "peer", peer)
	}
	return got == rightToken, wait
}

// Local returns nil when a request comes from this machine and by nobody else's wish: that is who may come in
// where no token is set.
func Local(r *http.Request) error {
	const remedy = "set admin_token in the configuration and send it as \"Authorization: Bearer TOKEN\""
	switch {
	case !loopback.Peer(r.RemoteAddr):
		return refuse(http.StatusForbidden, "forbidden", "without an admin token only this machine may ask; %s", remedy)
	case r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "":
		// The peer is a proxy on this machine; who stands behind it cannot be known.
		return refuse(http.StatusForbidden, "forbidden", "the request came through a proxy, and without an admin token only this machine may ask; %s", remedy)
	case !loopback.Socket(r.RemoteAddr) && !loopback.Host(r.Host):
		// A page on a name that somebody has pointed to this machine (DNS rebinding).
		return refuse(http.StatusForbidden, "forbidden", "without an admin token this machine must be asked as localhost or 127.0.0.1, not as %q; or %s", shown(r.Host), remedy)
	case loopback.ForeignPage(r):
		return refuse(http.StatusForbidden, "forbidden", "without an admin token no web page may ask; %s", remedy)
	}
	return nil
}
