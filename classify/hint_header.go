package classify

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// bucket is one limit of a family of rate-limit headers.
type bucket struct {
	name      string // "requests", "tokens", "requests-day", "unified", …
	reset     hint
	remaining float64
	counted   bool // remaining was stated
}

// resetHeaders returns when the bucket that is used up is filled again. Headers that show plenty
// left say nothing about the failure.
func resetHeaders(h *hints, header http.Header, where string, a *answer) hint {
	if len(header) == 0 {
		return hint{}
	}
	if u := unified(h, header, where); u.ok {
		return u
	}
	if c := codex(h, header, where); c.ok {
		return c
	}
	var buckets []bucket
	for key, vs := range header {
		if len(vs) == 0 {
			continue
		}
		name := strings.ToLower(key)
		var b bucket
		switch {
		case name == "ratelimit":
			for _, b := range draftField(strings.Join(vs, ", ")) {
				if b.reset.source = where + name; b.reset.ok && b.reset.wait > 0 {
					buckets = append(buckets, b)
				}
			}
			continue
		case name == "x-ratelimit-timeremaining":
			b = bucket{name: "time", reset: h.seconds(vs[0], where+name)}
		default:
			b = namedBucket(h, header, name, vs[0], where)
		}
		if b.reset.ok && b.reset.wait > 0 {
			buckets = append(buckets, b)
		}
	}
	return pick(buckets, a)
}

// namedBucket reads x-ratelimit-reset[-BUCKET], anthropic-ratelimit-BUCKET-reset, ratelimit-reset
// and their likes together with what remains of the bucket.
func namedBucket(h *hints, header http.Header, name, value, where string) bucket {
	i := strings.Index(name, "reset")
	if i < 0 || !strings.Contains(name, "ratelimit") && !strings.Contains(name, "rate-limit") {
		return bucket{}
	}
	b := bucket{reset: h.at(value, where+name)}
	rest := strings.Replace(name, "reset", "remaining", 1)
	if v := header.Get(rest); v != "" {
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil || n < 0 {
			// -1 is how Azure says that it does not know.
			return bucket{}
		}
		b.remaining, b.counted = n, true
	}
	b.name = strings.Trim(strings.NewReplacer("anthropic", "", "x-", "", "ratelimit", "", "rate-limit", "", "reset", "", "--", "-").Replace(name), "-")
	return b
}

// draftField reads the lists of the IETF's drafts: `"burst";r=5;t=3, "hourly";r=0;t=27` has a
// bucket an item, `limit=10, remaining=0, reset=27` is one bucket.
func draftField(v string) []bucket {
	var bs []bucket
	for item := range strings.SplitSeq(v, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(item), ";")
		member := strings.Contains(name, "=")
		if !member || len(bs) == 0 {
			b := bucket{}
			if !member {
				b.name = strings.Trim(name, `" `)
			}
			bs = append(bs, b)
		}
		b := &bs[len(bs)-1]
		for part := range strings.SplitSeq(item, ";") {
			k, val, _ := strings.Cut(strings.TrimSpace(part), "=")
			n, err := strconv.ParseFloat(val, 64)
			if err != nil {
				continue
			}
			switch k {
			case "r", "remaining":
				b.remaining, b.counted = n, true
			case "t", "reset":
				b.reset = hint{wait: fromSeconds(n), given: strings.TrimSpace(item), ok: true}
			}
		}
	}
	return bs
}

// pick chooses among buckets: one whose remaining is 0, the longest of several; where the words
// name the day, a day's bucket; where nothing is counted, the one that the words name, else the
// shortest, since trying again tells.
func pick(bs []bucket, a *answer) hint {
	var best bucket
	better := func(b bucket, longer bool) bool {
		return !best.reset.ok || longer == (b.reset.wait > best.reset.wait) && b.reset.wait != best.reset.wait
	}
	if a.matches(perDay) {
		for _, b := range bs {
			if strings.Contains(b.name, "day") && better(b, true) {
				best = b
			}
		}
		if best.reset.ok {
			return best.reset
		}
	}
	counted := false
	for _, b := range bs {
		counted = counted || b.counted
		if b.counted && b.remaining == 0 && better(b, true) {
			best = b
		}
	}
	if best.reset.ok || counted {
		return best.reset
	}
	for _, unit := range [...]string{"token", "request"} {
		for _, b := range bs {
			if strings.Contains(b.name, unit) && a.says(unit) && better(b, true) {
				best = b
			}
		}
		if best.reset.ok {
			return best.reset
		}
	}
	for _, b := range bs {
		if better(b, false) {
			best = b
		}
	}
	return best.reset
}

var perDay = newPattern("per day")

// says reports whether a code or the words have the unit.
func (a *answer) says(unit string) bool {
	for _, c := range a.codes {
		if strings.Contains(c.canon, unit) {
			return true
		}
	}
	return strings.Contains(a.text, unit)
}

// unified reads Anthropic's subscription windows: the representative claim's reset.
func unified(h *hints, header http.Header, where string) hint {
	const p = "Anthropic-Ratelimit-Unified-"
	if header.Get(p+"Status") != "rejected" {
		return hint{}
	}
	if v := header.Get(p + "Reset"); v != "" {
		return h.at(v, where+strings.ToLower(p)+"reset")
	}
	name := ""
	switch header.Get(p + "Representative-Claim") {
	case "five_hour":
		name = p + "5h-Reset"
	case "seven_day":
		name = p + "7d-Reset"
	}
	if v := header.Get(name); name != "" && v != "" {
		return h.at(v, where+strings.ToLower(name))
	}
	return hint{}
}

// codex reads the windows of a ChatGPT plan: the one that is used up, else the first.
func codex(h *hints, header http.Header, where string) hint {
	var best hint
	for _, w := range [...]string{"X-Codex-Primary-", "X-Codex-Secondary-"} {
		var c hint
		if v := header.Get(w + "Reset-At"); v != "" {
			c = h.at(v, where+strings.ToLower(w)+"reset-at")
		} else if v := header.Get(w + "Reset-After-Seconds"); v != "" {
			c = h.seconds(v, where+strings.ToLower(w)+"reset-after-seconds")
		}
		if !c.ok || c.wait <= 0 {
			continue
		}
		used, err := strconv.ParseFloat(header.Get(w+"Used-Percent"), 64)
		if err == nil && used >= 100 && c.wait > best.wait {
			best = c
		} else if !best.ok && (err != nil || header.Get("X-Codex-Secondary-Used-Percent") == "") {
			best = c
		}
	}
	return best
}

// nextDay returns the next midnight of a zone.
func nextDay(now time.Time, zone string) time.Time {
	l := now.In(location(zone))
	return time.Date(l.Year(), l.Month(), l.Day()+1, 0, 0, 0, 0, l.Location())
}

// nextMonth returns the first of the next month of a zone.
func nextMonth(now time.Time, zone string) time.Time {
	l := now.In(location(zone))
	return time.Date(l.Year(), l.Month()+1, 1, 0, 0, 0, 0, l.Location())
}
