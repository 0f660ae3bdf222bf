package classify

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxHint is the longest wait that is plausible: no provider's quota window is longer. A longer one
// counts only where the answer states no other, and is left to the engine's caps.
const maxHint = 31 * 24 * time.Hour

// longHint is the wait beyond which a limit is a quota and not a rate limit.
const longHint = 10 * time.Minute

// hint is a stated wait.
type hint struct {
	wait   time.Duration
	until  time.Time // set where the upstream named a point in time
	source string    // where it was read
	given  string    // as it was written
	prose  bool
	ok     bool
}

// hints gathers what an answer says about when to come back, in the order of trust: the
// retry-after headers, body fields, words, reset headers of the bucket that is used up.
type hints struct {
	inner  http.Header // headers found inside the body
	body   []hint
	best   hint
	absurd hint // the first one that can hardly be meant, a long one before any other
	now    time.Time
}

// member reads a body field that may be a hint.
func (h *hints) member(key string, m *node) {
	if m.kind != nString && m.kind != nNumber || m.val == "" {
		return
	}
	switch key {
	case "retrydelay", "retry_delay", "quotaresetdelay":
		h.delay(m.val, m.key)
	case "quotaresettimestamp", "resets_at", "reset_at", "resetsat", "resetat", "reset_time", "resettime", "retry_at", "quota_reset_at", "x-ratelimit-reset":
		h.body = append(h.body, h.at(m.val, m.key))
	case "resets_in_seconds", "reset_in_seconds", "retry_after", "retry_after_seconds", "retryafter", "estimated_time", "retry-after", "reset_after_seconds", "resets_in", "retry_after_sec", "wait_seconds", "resets_after_seconds":
		h.body = append(h.body, h.seconds(m.val, m.key))
	case "retry_after_ms", "retryafterms", "retry-after-ms", "reset_in_ms", "resets_in_ms":
		h.body = append(h.body, h.millis(m.val, m.key))
	}
}

// delay reads a duration with a unit: "26s", "539.477544ms", "1h43m56s".
func (h *hints) delay(v, source string) {
	if d, ok := parseGoDuration(v); ok {
		h.body = append(h.body, hint{wait: d, source: source, given: v, ok: true})
	}
}

func (h *hints) seconds(v, source string) hint {
	if d, ok := parseGoDuration(v); ok {
		return hint{wait: d, source: source, given: v, ok: true}
	}
	f, ok := parseNumber(v)
	if !ok {
		return hint{}
	}
	return hint{wait: fromSeconds(f), source: source, given: v, ok: true}
}

// parseNumber reads a number. One that no float64 holds is an infinite one.
func parseNumber(v string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	return f, (err == nil || errors.Is(err, strconv.ErrRange)) && !math.IsNaN(f)
}

func (h *hints) millis(v, source string) hint {
	f, ok := parseNumber(v)
	if !ok {
		return hint{}
	}
	return hint{wait: fromSeconds(f / 1000), source: source, given: v, ok: true}
}

// longestHint is what every longer wait counts as: so long that every cap cuts it, and short enough
// to be added to a date.
const longestHint = 1e9 * time.Second

// fromSeconds converts without overflow: what is too long stays too long.
func fromSeconds(f float64) time.Duration {
	if f > 1e9 {
		return longestHint
	}
	if f < -1e9 {
		return -1e9 * time.Second
	}
	return time.Duration(f * float64(time.Second))
}

// at reads a point in time: RFC 3339, an HTTP date, seconds or milliseconds since 1970, or, by
// its size, a number of seconds from now.
func (h *hints) at(v, source string) hint {
	v = strings.TrimSpace(v)
	if t, ok := parseInstant(v); ok {
		return h.point(t, source, v)
	}
	if d, ok := parseGoDuration(v); ok {
		return hint{wait: d, source: source, given: v, ok: true}
	}
	f, ok := parseNumber(v)
	if !ok {
		return hint{}
	}
	switch {
	case f >= 1e14 || f < 0:
		return hint{wait: fromSeconds(f), source: source, given: v, ok: true}
	case f >= 1e11:
		return h.point(time.UnixMilli(int64(f)), source, v)
	case f >= 1e9:
		return h.point(time.Unix(int64(f), 0), source, v)
	}
	return hint{wait: fromSeconds(f), source: source, given: v, ok: true}
}

func (h *hints) point(t time.Time, source, given string) hint {
	if wait := t.Sub(h.now); wait > longestHint {
		return hint{wait: longestHint, source: source, given: given, ok: true}
	}
	return hint{wait: t.Sub(h.now), until: t, source: source, given: given, ok: true}
}

func parseInstant(v string) (time.Time, bool) {
	if len(v) < 10 || !strings.ContainsAny(v, "-:,") {
		return time.Time{}, false
	}
	if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
		return t, true
	}
	if t, err := http.ParseTime(v); err == nil {
		return t, true
	}
	return time.Time{}, false
}

// parseGoDuration reads "6m0s", "20ms", "3h5m45.6s", "2m59.56s", "7d", "12 s". A bare number is
// no duration.
func parseGoDuration(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 40 {
		return 0, false
	}
	var total float64
	seen := false
	for s != "" {
		i := 0
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' || i == 0 && s[i] == '-') {
			i++
		}
		if i == 0 {
			return 0, false
		}
		n, ok := parseNumber(s[:i])
		if !ok {
			return 0, false
		}
		s = strings.TrimLeft(s[i:], " ")
		j := 0
		for j < len(s) && (s[j] >= 'a' && s[j] <= 'z' || s[j] >= 'A' && s[j] <= 'Z' || s[j] >= 0x80) {
			j++
		}
		unit, ok := shortUnits[strings.ToLower(s[:j])]
		if !ok {
			return 0, false
		}
		total += n * unit
		seen = true
		s = strings.TrimLeft(s[j:], " ,")
	}
	return fromSeconds(total), seen
}

// shortUnits are units in seconds.
var shortUnits = map[string]float64{
	"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
	"m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
	"d": 86400, "day": 86400, "days": 86400, "w": 604800, "week": 604800, "weeks": 604800, "millisecond": 1e-3, "milliseconds": 1e-3,
}

// read picks the hint that counts.
func (h *hints) read(a *answer) {
	header := a.in.Header
	take := func(c hint) bool {
		if !c.ok || h.best.ok {
			return h.best.ok
		}
		switch {
		case c.wait > maxHint, c.wait < 0, c.wait == 0 && !c.until.IsZero():
			// A time that has come: the upstream's clock or ours is off, or the answer is old.
			h.doubt(c)
			return false
		}
		h.best = c
		return true
	}
	take(headerHint(header, "Retry-After-Ms", "", h.millis))
	take(headerHint(header, "X-Ms-Retry-After-Ms", "", h.millis))
	take(headerHint(header, "Retry-After", "", h.retryAfter))
	for _, name := range [...]string{"X-Retry-After", "X-Ratelimit-Retry-After", "X-Rate-Limit-Retry-After"} {
		take(headerHint(header, name, "", h.retryAfter))
	}
	take(headerHint(h.inner, "Retry-After-Ms", "body ", h.millis))
	take(headerHint(h.inner, "Retry-After", "body ", h.retryAfter))
	if !h.best.ok {
		longest := h.longest()
		take(longest)
	}
	take(resetHeaders(h, h.inner, "body ", a))
	if !h.best.ok {
		for _, r := range a.raw {
			if take(proseHint(r, h.now, a.zoneOf(r))) {
				break
			}
		}
	}
	take(resetHeaders(h, header, "", a))
	if !h.best.ok && h.absurd.wait > maxHint {
		h.best, h.absurd = h.absurd, hint{}
	}
	a.setIf(isLongHint, h.best.ok && h.best.wait > longHint)
	a.setIf(isShortHint, h.best.ok && !h.best.prose && h.best.wait <= time.Minute)
}

// doubt keeps a wait that counts only in want of a better one.
func (h *hints) doubt(c hint) {
	if !h.absurd.ok || c.wait > maxHint && h.absurd.wait <= maxHint {
		h.absurd = c
	}
}

// longest returns the longest of the body's waits. A point in time is mostly rounded to the
// second, so a duration that agrees with it is taken instead.
func (h *hints) longest() hint {
	var best hint
	for _, b := range h.body {
		switch {
		case !b.ok:
		case b.wait < 0 || b.wait > maxHint:
			h.doubt(b)
		case b.wait > best.wait || !best.ok:
			best = b
		}
	}
	for _, b := range h.body {
		if b.ok && b.until.IsZero() && !best.until.IsZero() && b.wait > 0 && best.wait-b.wait < 5*time.Second {
			return b
		}
	}
	return best
}

// zoneOf returns the zone of dates that a message writes without one: the provider's or, where
// an aggregator names the provider that it quotes, that one's. Of strangers, Chinese ones write
// Beijing time.
func (a *answer) zoneOf(message string) *time.Location {
	zone := a.traits.zone
	if zone == "" && strings.Contains(message, "rovider (") {
		name := strings.NewReplacer(".", "-", " ", "-").Replace(strings.ToLower(between(message, "rovider (", ")")))
		zone = traitsOf(name).zone
	}
	if zone == "" {
		for _, r := range message {
			if r >= 0x4E00 && r <= 0x9FFF {
				zone = "Asia/Shanghai"
			} else if r >= 0x3040 && r <= 0x30FF {
				return time.UTC
			}
		}
	}
	return location(zone)
}

func headerHint(header http.Header, name, where string, parse func(v, source string) hint) hint {
	v := header.Get(name)
	if v == "" {
		return hint{}
	}
	return parse(v, where+strings.ToLower(name))
}

// retryAfter reads the header: seconds, a date, and what is seen instead of them.
func (h *hints) retryAfter(v, source string) hint {
	if t, ok := parseInstant(strings.TrimSpace(v)); ok {
		return h.point(t, source, v)
	}
	if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && f >= 1.5e9 && f < 4e9 {
		return h.point(time.Unix(int64(f), 0), source, v)
	}
	return h.seconds(v, source)
}
