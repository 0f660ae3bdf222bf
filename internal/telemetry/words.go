package telemetry

import "omniroute/internal/dialect"

// statuses are the labels for HTTP statuses. Upstreams may answer with any number: the rare ones
// are counted by their class.
var statuses = [...]string{
	"200", "201", "202", "204", "2xx",
	"400", "401", "403", "404", "405", "408", "409", "410", "411", "413", "415", "422", "424", "426", "429", "431", "451", "499", "4xx",
	"500", "501", "502", "503", "504", "529", "5xx", "other",
}

// statusAt has the place in statuses of each number from 0 to 599.
var statusAt = func() (at [600]uint8) {
	place := make(map[string]uint8, len(statuses))
	for i, s := range statuses {
		place[s] = uint8(i)
	}
	digits := func(n int) string { return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)}) }
	for n := range at {
		i, ok := place[digits(n)]
		if !ok {
			i, ok = place[digits(n)[:1]+"xx"]
		}
		if !ok {
			i = place["other"]
		}
		at[n] = i
	}
	return at
}()

// statusIndex returns the place of a status in statuses.
func statusIndex(status int) int {
	if status < 0 || status >= len(statusAt) {
		return len(statuses) - 1
	}
	return int(statusAt[status])
}

// codeLabel bounds the codes of errors: those that are not ours came from an upstream.
func codeLabel(code string) string {
	switch code {
	case dialect.CodeAllTargetsUnavailable, dialect.CodeNoConnection, dialect.CodeModelNotFound, dialect.CodeLocalNetwork,
		dialect.CodeDeadlineExceeded, dialect.CodeQueueFull, dialect.CodeShuttingDown, dialect.CodeInvalidAPIKey,
		dialect.CodeClientRateLimited, dialect.CodeRequestTooLarge, dialect.CodeUpstreamError, "invalid_request":
		return code
	}
	return "upstream"
}

// tokenTypes are the labels of what a usage counts, in the order of tokenCounts. The last three
// are parts of the first two.
var tokenTypes = [...]string{"input", "output", "cache_read", "cache_write", "reasoning"}

func tokenCounts(u dialect.Usage) [len(tokenTypes)]int64 {
	return [...]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning}
}
