package classify

import (
	"slices"
	"sync"

	"omniroute/resilience"
)

//go:generate go test -run TestErrorsDoc -update .

// Shorthand for the rule tables.
const (
	request    = resilience.ScopeRequest
	model      = resilience.ScopeModel
	connection = resilience.ScopeConnection
	provider   = resilience.ScopeProvider
	client     = resilience.ScopeClient

	rateLimit   = resilience.KindRateLimit
	quota       = resilience.KindQuotaExhausted
	billing     = resilience.KindBilling
	auth        = resilience.KindAuth
	permission  = resilience.KindPermission
	notFound    = resilience.KindModelNotFound
	overloaded  = resilience.KindModelOverloaded
	serverError = resilience.KindServerError
	timeout     = resilience.KindTimeout
	network     = resilience.KindNetwork
	malformed   = resilience.KindMalformedResponse
	empty       = resilience.KindEmptyResponse
	tooLong     = resilience.KindContextLength
	content     = resilience.KindContentPolicy
	invalid     = resilience.KindInvalidRequest
	tooLarge    = resilience.KindTooLarge
	unknown     = resilience.KindUnknown
)

// st reads statuses of the tables below; "2xx" there stands for an error inside a success that
// states no status of its own.
func st(ss ...string) []StatusRange {
	out := make([]StatusRange, 0, len(ss))
	for _, s := range ss {
		r, err := ParseStatus(s)
		if err != nil {
			panic(err)
		}
		out = append(out, r)
	}
	return out
}

func ex(status int, body string) []Example { return []Example{{Status: status, Body: body}} }

func exHeader(status int, header, body string) []Example {
	return []Example{{Status: status, Header: header, Body: body}}
}

const jsonType, textType, htmlType, sseType = "Content-Type: application/json", "Content-Type: text/plain", "Content-Type: text/html", "Content-Type: text/event-stream"

// refused are the statuses of an answer whose words are the upstream's refusal; the words of a
// 5xx are mostly about its own parts.
var refused = st("2xx", "4xx")

// BuiltinRules returns the built-in rules in the order in which they are tried.
func BuiltinRules() []Rule {
	var rs []Rule
	for _, table := range [][]Rule{
		providerRules, plainCodeRules, answerRules, edgeRules, googleRules, requestRules, relayRules, codeRules, shapeRules, wordRules, faultRules, defaultRules,
	} {
		rs = append(rs, table...)
	}
	return rs
}

// builtinIndex compiles the built-in rules once: those that name no provider, and for each
// provider that is named its own together with those.
var builtinIndex = sync.OnceValues(func() (generic []*compiled, byProvider map[string][]*compiled) {
	byProvider = map[string][]*compiled{}
	var all []*compiled
	for _, r := range BuiltinRules() {
		c := compile(r)
		all = append(all, c)
		if len(r.Provider) == 0 {
			generic = append(generic, c)
		}
		for _, p := range r.Provider {
			byProvider[p] = nil
		}
	}
	for p := range byProvider {
		for _, c := range all {
			if len(c.Provider) == 0 || slices.Contains(c.Provider, p) {
				byProvider[p] = append(byProvider[p], c)
			}
		}
	}
	return generic, byProvider
})

// IsDefault reports whether a verdict's rule is a default: the answer said nothing that any
// rule knows, and its status decided.
func IsDefault(rule string) bool { return len(rule) > 8 && rule[:8] == "default." }
