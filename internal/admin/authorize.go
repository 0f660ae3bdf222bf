package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"omniroute/internal/config"
)

// authorize returns nil when the request may come in: with the token where one is set, else from
// this machine and by nobody else's wish.
func authorize(r *http.Request, cfg *config.Config) error {
	if !cfg.AdminToken.Empty() {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "bearer") && cfg.AdminToken.Matches(strings.TrimSpace(token)) {
			return nil
		}
		return refuse(http.StatusUnauthorized, "unauthorized", "the admin token is missing or wrong; send the admin_token of the configuration as \"Authorization: Bearer TOKEN\"")
	}
	const remedy = "set admin_token in the configuration and send it as \"Authorization: Bearer TOKEN\""
	switch {
	case !fromHere(r.RemoteAddr):
		return refuse(http.StatusForbidden, "forbidden", "without an admin token only this machine may ask; %s", remedy)
	case r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "":
		// The peer is a proxy on this machine; who stands behind it cannot be known.
		return refuse(http.StatusForbidden, "forbidden", "the request came through a proxy, and without an admin token only this machine may ask; %s", remedy)
	case !onSocket(r.RemoteAddr) && !localName(hostOf(r.Host)):
		// A page on a name that somebody has pointed to this machine (DNS rebinding).
		return refuse(http.StatusForbidden, "forbidden", "without an admin token this machine must be asked as localhost or 127.0.0.1, not as %q; or %s", shown(r.Host), remedy)
	case foreign(r):
		return refuse(http.StatusForbidden, "forbidden", "without an admin token no web page may ask; %s", remedy)
	}
	return nil
}

// fromHere reports whether the peer is on this machine: the address is the connection's own, which
// no header can change.
func fromHere(peer string) bool {
	if onSocket(peer) {
		return true
	}
	host, _, err := net.SplitHostPort(peer)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// onSocket reports whether the peer came over a unix socket: such a peer has no address.
func onSocket(peer string) bool {
	return peer == "" || strings.HasPrefix(peer, "@") || strings.HasPrefix(peer, "/")
}

// hostOf returns the name in a Host header, without port and brackets.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func localName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// foreign reports whether a browser sent the request for a page of another origin.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
}
