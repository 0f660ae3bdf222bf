package sqlite

import (
	"fmt"
	"math"
	"strings"

	"omniroute/resilience"
)

// scan selects each row as one text, because most of the cost of a scan is per column: the
// numbers, the lengths of the names in bytes, and then the names and the detail without any
// separator. Load of a large store is twice as fast for it.
func (t table) scan() string {
	lockout := "0"
	if t.lockoutMs != "" {
		lockout = t.lockoutMs
	}
	return `SELECT concat_ws(' ', level, failures, since_ms, until_ms, updated_ms, ` + lockout + `,
  octet_length(provider), octet_length(connection), octet_length(model), octet_length(state), octet_length(kind),
  provider || connection || model || state || kind || detail)
FROM ` + t.name
}

// parseRow reads what scan selected. The reason is empty when the row makes sense; the key is
// set as far as it could be read. The record keeps no reference to the row's text.
func parseRow(row string, in *interner) (r resilience.Record, reason string) {
	var n [11]int64
	for i := range n {
		word, rest, ok := strings.Cut(row, " ")
		if n[i], row = 0, rest; !ok || !parseInt(word, &n[i]) {
			return r, "its columns cannot be told apart"
		}
	}
	var names [5]string
	for i := range names {
		size := n[6+i]
		if size < 0 || size > int64(len(row)) {
			return r, "its columns cannot be told apart"
		}
		names[i], row = row[:size], row[size:]
	}
	r.Key = resilience.Key{Provider: in.name(0, names[0]), Connection: in.name(1, names[1]), Model: strings.Clone(names[2])}
	kind, err := in.kind(names[4])
	if err != nil {
		return r, err.Error()
	}
	for i, column := range [...]string{"level", "failures", "since_ms", "until_ms", "updated_ms", "lockout_duration_ms"} {
		if n[i] < 0 {
			return r, fmt.Sprintf("%s is %d, which is negative", column, n[i])
		}
	}
	if n[0] > math.MaxInt || n[1] > math.MaxInt {
		return r, "level or failures is too large"
	}
	r.State, r.Kind = in.name(2, names[3]), kind
	r.Level, r.Failures = int(n[0]), int(n[1])
	r.SinceMs, r.UntilMs, r.UpdatedMs, r.LockoutMs = n[2], n[3], n[4], n[5]
	r.Detail = strings.Clone(row)
	return r, ""
}

// parseInt reads a decimal integer that fits.
func parseInt(s string, n *int64) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 19 {
		return false
	}
	var u uint64 // 19 digits cannot overflow it
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return false
		}
		u = u*10 + uint64(c-'0')
	}
	switch negative := len(digits) < len(s); {
	case negative && u <= 1<<63:
		*n = -int64(u)
	case !negative && u < 1<<63:
		*n = int64(u)
	default:
		return false
	}
	return true
}

// interner shares the strings that repeat from row to row. Rows come in the order of their
// keys, so that most names equal those of the row before.
type interner struct {
	last  [3]string // provider, connection, state
	kinds map[string]resilience.Kind
}

func (in *interner) name(column int, s string) string {
	if in.last[column] != s {
		in.last[column] = strings.Clone(s)
	}
	return in.last[column]
}

func (in *interner) kind(name string) (resilience.Kind, error) {
	if in.kinds == nil {
		in.kinds = map[string]resilience.Kind{}
		for _, k := range resilience.Kinds() {
			in.kinds[k.String()] = k
		}
	}
	if k, ok := in.kinds[name]; ok {
		return k, nil
	}
	return resilience.ParseKind(strings.Clone(name))
}
