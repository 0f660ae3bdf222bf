package admin

import (
	"net/http"
	"strings"

	"omniroute/internal/config"
	"omniroute/internal/loopback"
)

// Authorize returns nil when the request may come in: with the token where one is set, else from
// this machine and by nobody else's wish.
func Authorize(r *http.Request, cfg *config.Config) error {
	if !cfg.AdminToken.Empty() {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "bearer") && cfg.AdminToken.Matches(strings.TrimSpace(token)) {
			return nil
		}
		return refuse(http.StatusUnauthorized, "unauthorized", "the admin token is missing or wrong; send the admin_token of the configuration as \"Authorization: Bearer TOKEN\"")
	}
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
