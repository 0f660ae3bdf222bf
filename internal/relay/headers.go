package relay

import (
	"net/http"
	"strings"
)

// Headers that never pass, in canonical form. Hop-by-hop ones belong to one connection, the
// others to the two parties that we stand between.
var (
	notUp = set(hopByHop, "Host", "Content-Length", "Accept-Encoding", "Content-Encoding", "Authorization", "X-Api-Key",
		"X-Goog-Api-Key", "Api-Key", "Cookie", "Expect",
		// Where a request came from is nobody's business beyond us.
		"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Server",
		"X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip")
	notDown = set(hopByHop, "Content-Length", "Content-Encoding", "Set-Cookie", "Date", "Server", "Via", "Alt-Svc",
		"Strict-Transport-Security", "X-Request-Id", "Request-Id", "Nel", "Report-To", "Public-Key-Pins", "Vary")
)

var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func set(base []string, more ...string) map[string]bool {
	m := make(map[string]bool, len(base)+len(more))
	for _, h := range base {
		m[h] = true
	}
	for _, h := range more {
		m[h] = true
	}
	return m
}

// vendorOnly begin the names of request headers that mean something to one vendor's API alone.
var vendorOnly = []string{"Anthropic-", "Openai-", "X-Goog-", "X-Stainless-", "X-Claude-", "X-Codex-"}

const ownHeader = "X-Omniroute-"

// copyHeaders copies what may pass. Headers that a Connection header names do not.
func copyHeaders(dst, src http.Header, not map[string]bool) {
	var named []string
	for _, v := range src["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			named = append(named, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
next:
	for name, values := range src {
		if not[name] || strings.HasPrefix(name, ownHeader) {
			continue
		}
		for _, n := range named {
			if n == name {
				continue next
			}
		}
		dst[name] = values
	}
}

func isEvents(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream")
}

func isJSON(h http.Header) bool {
	return strings.Contains(strings.ToLower(h.Get("Content-Type")), "json")
}
