// Package loopback tells whether a request comes from a program on this machine by its own wish,
// or from a web page that a browser on this machine shows. Where no key is asked for that is all
// that keeps pages of others out.
package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Peer reports whether the peer is on this machine: the address is the connection's own, which no
// header can change.
func Peer(addr string) bool {
	if Socket(addr) {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Socket reports whether the peer came over a unix socket, which no browser does: such a peer has
// no address.
func Socket(addr string) bool {
	return addr == "" || strings.HasPrefix(addr, "@") || strings.HasPrefix(addr, "/")
}

// Host reports whether a Host header, with or without a port, has a name that always means this
// machine. Any other name may have been pointed here by whoever owns it (DNS rebinding).
func Host(host string) bool {
	name := hostname(host)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// Address reports whether a Host header has an IP address in place of a name. An address cannot be
// pointed elsewhere.
func Address(host string) bool {
	_, err := netip.ParseAddr(hostname(host))
	return err == nil
}

// hostname returns the name in a Host header, in lower case, without port, brackets and final dot.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// ForeignPage reports whether a browser sent the request for a page of another origin, which a page
// on another port of this machine is too. Programs that are no browsers send no Origin.
func ForeignPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return true
	}
	origin := r.Header["Origin"]
	if len(origin) == 0 {
		return false
	}
	u, err := url.Parse(origin[0])
	return err != nil || len(origin) > 1 || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
}
