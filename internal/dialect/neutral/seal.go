package neutral

import (
	"encoding/base64"
	"strings"
)

// Seal is an opaque value by which an upstream knows its own thoughts again. Other upstreams
// refuse it, so that it carries the dialect that it is of.
type Seal struct {
	Origin string // the dialect's name; empty means no seal
	Value  string
	// Redacted: the value is the thought itself, encrypted.
	Redacted bool
}

// mark begins the seals that we hand to clients of another dialect. It is six bytes long, so
// that its base64 is a prefix too.
const mark = "omni1:"

// Wrapped is what every wrapped seal begins with.
const Wrapped = "b21uaTE6"

// Unsealed goes with thoughts that nobody sealed, to clients that expect a seal. No upstream is of
// its origin, so that it is never sent to one.
var Unsealed = Seal{Origin: "none", Value: "-"}

// WrapAny is Wrap with Unsealed in place of no seal.
func (s Seal) WrapAny(dialect string) string {
	if s.Origin == "" || s.Value == "" {
		return Unsealed.Wrap(dialect)
	}
	return s.Wrap(dialect)
}

// Wrap returns the seal in a form that a client of that dialect keeps for us: its own seals as
// they are, others marked with their origin, as base64 since some clients decode it.
func (s Seal) Wrap(dialect string) string {
	if s.Origin == "" || s.Value == "" {
		return ""
	}
	if s.Origin == dialect {
		return s.Value
	}
	flag := ":"
	if s.Redacted {
		flag = "!"
	}
	return base64.StdEncoding.EncodeToString([]byte(mark + s.Origin + flag + s.Value))
}

// Unwrap reads what a client of that dialect has kept.
func Unwrap(dialect, value string) Seal {
	if value == "" {
		return Seal{}
	}
	if strings.HasPrefix(value, Wrapped) {
		if raw, err := base64.StdEncoding.DecodeString(value); err == nil {
			rest := string(raw[len(mark):])
			if i := strings.IndexAny(rest, ":!"); i > 0 && i+1 < len(rest) {
				return Seal{Origin: rest[:i], Value: rest[i+1:], Redacted: rest[i] == '!'}
			}
		}
	}
	return Seal{Origin: dialect, Value: value}
}
