package headroom

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Unit is what a bucket counts.
type Unit uint8

// The units.
const (
	Requests     Unit = iota
	Tokens            // of prompts and answers together
	InputTokens       // of prompts
	OutputTokens      // of answers
	Share             // a part of a plan that nobody counts in anything; Limit is then 1000
)

var unitNames = [...]string{"requests", "tokens", "input tokens", "output tokens"}

// Reach is whom a bucket is for.
type Reach uint8

// The reaches.
const (
	OfModel   Reach = iota // this model on this account
	OfAccount              // everything on the account
	Unsaid                 // the header does not tell; the provider's rate_limit_scope does
)

// Reading is what the headers of one answer say of one bucket.
type Reading struct {
	// Label names the bucket as the headers do: "Requests", "Tokens-Minute", "Unified-5h".
	Label string
	Unit  Unit
	Reach Reach
	// Class narrows an account's bucket to the models with that word in their names.
	Class string
	// Limit is the size of the bucket, Remaining what is left of it; -1 where the headers do not say.
	Limit, Remaining int64
	// Wait is how long until the bucket is full, counted from the answer; -1 where the headers do not say.
	Wait time.Duration
	// Refills says that the bucket fills steadily until then, and not all at once.
	Refills bool

	refused bool // its status is "rejected"
}

// maxReadings bounds the buckets of one answer. Nobody sends more than eight.
const maxReadings = 12

// Readings are the buckets of one answer.
type Readings struct {
	list    [maxReadings]Reading
	n       int
	overall overall
}

// overall is what Anthropic's headers for plans say of all their windows together.
type overall struct {
	status string
	claim  string
}

// All returns the readings.
func (r *Readings) All() []Reading { return r.list[:r.n] }

// bucket finds or makes a reading.
func (r *Readings) bucket(label string, unit Unit) *Reading {
	for i := range r.list[:r.n] {
		if b := &r.list[i]; b.Unit == unit && b.Label == label {
			return b
		}
	}
	if r.n == maxReadings {
		return nil
	}
	r.n++
	b := &r.list[r.n-1]
	*b = Reading{Label: label, Unit: unit, Limit: -1, Remaining: -1, Wait: -1}
	return b
}

// Read reads the rate-limit headers of an answer that came at that time. It knows the families
// x-ratelimit-* in all orders of words, the RateLimit fields of the IETF's drafts, anthropic-ratelimit-*,
// x-tokenlimit-* and x-codex-*. A header that makes no sense is as good as none. The keys must be
// canonical, as net/http has them.
func (r *Readings) Read(h http.Header, now time.Time) {
	r.n, r.overall = 0, overall{}
	clock := serverClock{header: h, now: now}
	for key, values := range h {
		if len(key) < len("Ratelimit") || len(values) == 0 {
			continue
		}
		switch key[0] {
		case 'X':
			if rest, ok := strings.CutPrefix(key, "X-Ratelimit"); ok {
				r.field(rest, values[0], family{reach: OfModel}, &clock)
			} else if rest, ok := strings.CutPrefix(key, "X-Tokenlimit"); ok {
				r.field(rest, values[0], family{unit: Tokens, reach: Unsaid}, &clock)
			} else if rest, ok := strings.CutPrefix(key, "X-Codex-"); ok {
				r.codex(rest, values[0], &clock)
			}
		case 'R':
			switch rest, ok := strings.CutPrefix(key, "Ratelimit"); {
			case !ok:
			case rest == "":
				r.draft(values, false)
			case rest == "-Policy":
				r.draft(values, true)
			default:
				r.field(rest, values[0], family{reach: OfModel}, &clock)
			}
		case 'A':
			if rest, ok := strings.CutPrefix(key, "Anthropic-Ratelimit-Unified"); ok {
				r.unified(rest, values[0], &clock)
			} else if rest, ok := strings.CutPrefix(key, "Anthropic-Ratelimit"); ok {
				r.field(rest, values[0], family{reach: OfModel, refills: true}, &clock)
			}
		}
	}
	r.settle()
}

// family is what the headers of one kind have in common.
type family struct {
	unit    Unit
	reach   Reach
	refills bool
}

// field reads one header of the form limit, remaining or reset with the bucket's name before or
// behind that word.
func (r *Readings) field(rest, value string, f family, clock *serverClock) {
	bySize := strings.HasPrefix(rest, "bysize")
	if bySize {
		f.unit, rest = Tokens, rest[len("bysize"):]
	}
	at, word := -1, ""
	for i := 0; i < len(rest) && at < 0; {
		end := i + 1
		for end < len(rest) && rest[end] != '-' {
			end++
		}
		switch w := rest[i+1 : end]; {
		case strings.EqualFold(w, "limit"), strings.EqualFold(w, "remaining"), strings.EqualFold(w, "reset"):
			at, word = i, w
		}
		i = end
	}
	if at < 0 {
		return
	}
	label := strings.Trim(rest[at+1+len(word):], "-")
	if label == "" {
		label = strings.Trim(rest[:at], "-")
	}
	unit, named := f.unit, f.unit != Requests
	switch {
	case has(label, "token"):
		unit, named = Tokens, true
		if has(label, "input") || has(label, "prompt") {
			unit = InputTokens
		} else if has(label, "output") || has(label, "generated") {
			unit = OutputTokens
		}
	case has(label, "req"):
		named = true
	}
	b := r.bucket(label, unit)
	if b == nil {
		return
	}
	if b.Reach, b.Refills = f.reach, b.Refills || f.refills; !named {
		b.Reach = Unsaid
	}
	switch word[2] | 0x20 {
	case 'm': // limit, remaining
		n, ok := count(value)
		switch {
		case !ok:
		case word[0]|0x20 == 'l':
			b.Limit = n
		default:
			b.Remaining = n
		}
	case 's': // reset
		wait, spelled := clock.wait(value)
		if wait >= 0 {
			b.Wait, b.Refills = wait, b.Refills || spelled
		}
	}
}

// has reports whether a label has a lower-case word in it, in any case.
func has(label, word string) bool {
	for i := 0; i+len(word) <= len(label); i++ {
		if strings.EqualFold(label[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// count reads a number of things; the draft's "100, 100;w=60" is 100. Negative numbers are how
// some say that they do not know.
func count(v string) (int64, bool) {
	v = strings.TrimSpace(v)
	if i := strings.IndexAny(v, ",; "); i >= 0 {
		v = v[:i]
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f < 1e15) {
		return 0, false
	}
	return int64(f), true
}

// draft reads a RateLimit or RateLimit-Policy field of the IETF's drafts: `"burst";r=5;t=3, "day";r=1`
// has a bucket an item, `limit=10, remaining=0, reset=27` is one bucket.
func (r *Readings) draft(values []string, policy bool) {
	var b *Reading
	for _, v := range values {
		for item := range strings.SplitSeq(v, ",") {
			name, parts, _ := strings.Cut(strings.TrimSpace(item), ";")
			if strings.Contains(name, "=") {
				parts, name = name, ""
			} else if parts == "" {
				continue
			}
			if name != "" || b == nil {
				if b = r.bucket(strings.Trim(name, `" `), Requests); b == nil {
					return
				}
				b.Reach = Unsaid
			}
			for part := range strings.SplitSeq(parts, ";") {
				k, text, _ := strings.Cut(strings.TrimSpace(part), "=")
				n, ok := count(text)
				switch {
				case !ok:
				case k == "limit", policy && k == "q":
					b.Limit = n
				case !policy && (k == "r" || k == "remaining"):
					b.Remaining = n
				case !policy && (k == "t" || k == "reset"):
					b.Wait = seconds(float64(n))
				}
			}
		}
	}
}

// mostUsed is how much of a plan may be in use, in percent: more makes no sense, infinity included.
const mostUsed = 1000

// unified reads Anthropic's headers for plans: a status and a share of use for each window, some of
// which are for one class of models only, and one status over all.
func (r *Readings) unified(rest, value string, clock *serverClock) {
	i := strings.LastIndexByte(rest, '-')
	if i < 0 {
		return
	}
	window, word := strings.Trim(rest[:i], "-"), rest[i+1:]
	switch {
	case window == "" && word == "Status":
		r.overall.status = value
		return
	case window == "Representative" && word == "Claim":
		r.overall.claim = value
		return
	case word != "Status" && word != "Utilization" && word != "Reset", has(window, "overage"), has(window, "fallback"):
		return
	}
	b := r.bucket(window, Share)
	if b == nil {
		return
	}
	b.Reach, b.Limit = OfAccount, 1000
	if _, class, ok := strings.Cut(window, "_"); ok {
		b.Class = class
	}
	switch word {
	case "Status":
		b.refused = strings.EqualFold(value, "rejected")
	case "Utilization":
		if f, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && f >= 0 && f <= mostUsed {
			if f > 2 { // in percent
				f /= 100
			}
			b.Remaining = int64(max(0, 1-f) * 1000)
		}
	case "Reset":
		if wait, _ := clock.wait(value); wait >= 0 {
			b.Wait = wait
		}
	}
}

// codex reads the headers of OpenAI's plans.
func (r *Readings) codex(rest, value string, clock *serverClock) {
	window, word, ok := strings.Cut(rest, "-")
	if !ok || window != "Primary" && window != "Secondary" {
		return
	}
	b := r.bucket("Codex-"+window, Share)
	if b == nil {
		return
	}
	b.Reach, b.Limit = OfAccount, 1000
	switch word {
	case "Used-Percent":
		if f, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && f >= 0 && f <= mostUsed {
			b.Remaining = int64(max(0, 100-f) * 10)
		}
	case "Reset-After-Seconds", "Reset-At":
		if wait, _ := clock.wait(value); wait >= 0 {
			b.Wait = wait
		}
	}
}

// settle brings what the windows of a plan say together with what is said over all, and drops what
// says nothing.
func (r *Readings) settle() {
	refused := false
	for i := range r.list[:r.n] {
		b := &r.list[i]
		refused = refused || b.refused
		if b.Unit != Share || b.Label == "" {
			continue
		}
		switch {
		case b.refused && (r.overall.status == "" || strings.EqualFold(r.overall.status, "rejected")):
			b.Remaining = 0
		case b.Remaining == 0 && r.overall.status != "" || b.refused:
			b.Remaining = 1 // used up, and served all the same, by what was bought beside the plan
		}
	}
	kept := r.list[:0]
	for _, b := range r.list[:r.n] {
		if b.Unit == Share && b.Label == "" { // over all
			if refused || !strings.EqualFold(r.overall.status, "rejected") {
				continue // one of the windows says it better
			}
			b.Remaining = 0
			if i := strings.LastIndexByte(r.overall.claim, '_'); i >= 0 && r.overall.claim[i+1:] != "day" && r.overall.claim[i+1:] != "hour" {
				b.Class = r.overall.claim[i+1:]
			}
		}
		if b.Remaining >= 0 && b.Limit != 0 {
			kept = append(kept, b)
		}
	}
	r.n = len(kept)
}
