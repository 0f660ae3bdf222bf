package classify

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"omniroute/resilience"
)

// Rule says what one kind of failure means. All conditions that are given must hold; of a list,
// one entry must. Built-in and operator rules are the same type; the first rule that matches
// gives the verdict. Rules are never asked about a healthy answer.
type Rule struct {
	// ID names the rule in verdicts, logs and docs. Empty for an operator's rule means
	// "error_rules[N]".
	ID string
	// Provider and Dialect limit the rule to these; empty means all.
	Provider, Dialect []string
	// Status is the answer's HTTP status or, inside a success, the one that the error envelope
	// states. Empty means any.
	Status []StatusRange
	// Code matches error codes, types, statuses and reasons of the envelope, whatever their
	// spelling: case, "_", "-" and spaces do not count, nor does a trailing "Exception". A "*"
	// at either end matches any beginning or end.
	Code []string
	// Text matches the envelope's own words, case-insensitively, from the start of a word. A
	// "*" stands for anything within the sentence, a leading "^" for the beginning of a message, a final "$" for the end of a word. Words in
	// quotes and an echoed prompt are not seen.
	Text []string
	// Not vetoes: the rule does not match where one of these texts does.
	Not []string
	// Header is "name" (present) or "name: value" (contains value, case-insensitively).
	Header string

	// Scope and Kind are the verdict.
	Scope resilience.Scope
	Kind  resilience.Kind
	// Certain locks the model at once and Quarantine takes the connection out until a person
	// acts; both are for what waiting cannot cure.
	Certain, Quarantine bool
	// Cooldown, when positive, replaces the base of the ladder; Constant keeps it from doubling.
	Cooldown time.Duration
	Constant bool

	// Why is a line for people, Examples answers that reach the rule.
	Why      string
	Examples []Example

	facts   fact      // structural conditions, all needed
	absent  fact      // structural conditions, none allowed
	by      scopeBy   // how Scope is refined
	same    retrySame // whether waiting here can help, where the kind does not tell
	window  string    // the quota window that the rule knows: "day:UTC", "month:UTC"
	soft    bool      // passes without a person although its kind usually does not
	noHint  bool      // a stated wait is known to be untrue
	elseNot bool      // fails everywhere
}

// Example is an answer in short, self-written.
type Example struct {
	Provider, Dialect string
	Phase             Phase
	Status            int
	// Header is "name: value" lines.
	Header string
	Body   string
}

// input spells the example out.
func (e Example) input() Input {
	in := Input{Provider: e.Provider, Dialect: e.Dialect, Phase: e.Phase, Status: e.Status, Body: []byte(e.Body),
		Header: map[string][]string{}, Now: exampleNow}
	for line := range strings.Lines(e.Header) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			in.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return in
}

var exampleNow = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// scopeBy refines a built-in rule's scope.
type scopeBy uint8

const (
	byRule     scopeBy = iota
	byRate             // model or connection: what the words name, else what the provider's limits are keyed by
	byLoad             // model or provider: what the words name, else what the provider's capacity is shared by
	byResource         // model where the words name one, else the rule's scope
	byWork             // model where the words name one or behind a reseller, else the rule's scope
	byFault            // model behind a reseller, else the rule's scope
)

type retrySame uint8

const (
	sameByKind retrySame = iota
	sameNo
	sameYes
)

// StatusRange is an inclusive range of HTTP statuses.
type StatusRange struct{ From, To int }

// ParseStatus reads "429", "5xx" or "500-599".
func ParseStatus(s string) (StatusRange, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	bad := fmt.Errorf("status %q: write a status such as 429, a class such as 5xx, or a range such as 500-504", s)
	if len(s) == 3 && s[1:] == "xx" && s[0] >= '1' && s[0] <= '5' {
		n := int(s[0]-'0') * 100
		return StatusRange{n, n + 99}, nil
	}
	lo, hi, isRange := strings.Cut(s, "-")
	from, err := strconv.Atoi(strings.TrimSpace(lo))
	if err != nil {
		return StatusRange{}, bad
	}
	to := from
	if isRange {
		if to, err = strconv.Atoi(strings.TrimSpace(hi)); err != nil {
			return StatusRange{}, bad
		}
	}
	if from < 100 || to > 999 || to < from {
		return StatusRange{}, bad
	}
	return StatusRange{from, to}, nil
}

// String spells the range as ParseStatus reads it.
func (r StatusRange) String() string {
	switch {
	case r.From == r.To:
		return strconv.Itoa(r.From)
	case r.From%100 == 0 && r.To == r.From+99:
		return strconv.Itoa(r.From/100) + "xx"
	}
	return fmt.Sprintf("%d-%d", r.From, r.To)
}

func (r StatusRange) has(status int) bool { return r.From <= status && status <= r.To }
func (r StatusRange) covers(o StatusRange) bool {
	return r.From <= o.From && o.To <= r.To
}
