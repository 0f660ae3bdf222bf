package config

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
)

const redacted = "[redacted]"

// Secret holds a key or token and never shows it: not by fmt with any verb, not in JSON, YAML or text, not in a log.
// Only Reveal gives it out. The zero value is the absent secret.
type Secret struct{ value *string }

// NewSecret returns a secret with that value.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{&value}
}

// Reveal returns the value, for a header that goes upstream.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Empty reports whether there is no value.
func (s Secret) Empty() bool { return s.value == nil }

// Equal reports whether both hold the same value. It takes the same time wherever they differ.
func (s Secret) Equal(other Secret) bool { return s.Matches(other.Reveal()) }

// Matches reports whether presented is the value, in a time that does not depend on where they
// differ. An absent secret matches the empty string only.
func (s Secret) Matches(presented string) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(presented))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// String returns "[redacted]", or nothing when there is no value.
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return redacted
}

// Format writes String whatever the verb is.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// GoString returns String.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns String, so that JSON and YAML show no value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// ClientKey recognises one key of a client. It keeps the key's hash only.
type ClientKey struct{ sum [sha256.Size]byte }

const hashPrefix = "sha256:"

// ParseClientKey reads a key as the configuration has it: the key itself, or "sha256:" and 64 hex digits.
func ParseClientKey(text string) (ClientKey, error) {
	digits, hashed := strings.CutPrefix(text, hashPrefix)
	if !hashed {
		if text == "" {
			return ClientKey{}, fmt.Errorf("a client key is empty")
		}
		return ClientKey{sha256.Sum256([]byte(text))}, nil
	}
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != sha256.Size {
		return ClientKey{}, fmt.Errorf("a hashed client key is sha256: and 64 hex digits, as `omniroute key` prints it")
	}
	return ClientKey{[sha256.Size]byte(sum)}, nil
}

// Format writes "[redacted]" whatever the verb is: the hash of a short key gives the key away.
func (k ClientKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// Hashed returns the "sha256:…" form of the key.
func (k ClientKey) Hashed() string { return hashPrefix + hex.EncodeToString(k.sum[:]) }

// Matches reports whether presented is the key, in a time that does not depend on where they differ.
func (k ClientKey) Matches(presented string) bool {
	sum := sha256.Sum256([]byte(presented))
	return subtle.ConstantTimeCompare(k.sum[:], sum[:]) == 1
}
