package translate

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/resilience"
)

// Fault puts what an upstream of another dialect said of the client's request into words that
// every client dialect knows: the message stays, the upstream's types are left out, and the
// code is the one of the failure's kind, where clients act on one.
func Fault(e dialect.UpstreamError, kind resilience.Kind) dialect.UpstreamError {
	out := dialect.UpstreamError{Message: e.Message, Param: e.Param}
	switch kind {
	case resilience.KindContextLength:
		out.Code = "context_length_exceeded"
	case resilience.KindModelNotFound:
		out.Code = dialect.CodeModelNotFound
	case resilience.KindContentPolicy:
		out.Code = "content_policy_violation"
	default:
		if e.Code != "" && strings.Trim(e.Code, "0123456789") != "" && e.Code != strings.ToUpper(e.Code) {
			out.Code = e.Code
		}
	}
	return out
}
