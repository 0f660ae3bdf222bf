package classify

import (
	"strconv"
	"strings"
	"time"
)

// waitWords introduce a duration; what stands between them and the number is a few words at most.
var waitWords = words(
	"try again in", "try again after", "try again once", "tried again in", "retry in", "retry after", "retry again in", "retry again after", "retried in", "retried after", "again after",
	"wait for", "wait at least", "please wait", "must wait", "wait", "reset after", "resets after", "reset in", "resets in", "will reset in", "renews in", "refreshes in", "refresh in",
	"available in", "available again in", "available after", "retry-after:", "retry_after:", "retry after:", "retry-after", "back in", "again in", "expires in", "cooldown of", "backoff for", "back off for",
	"请在", "请等待", "等待", "请", "将在", "剩余", "再过", "après", "dans", "через", "in etwa", "あと",
)

// dateWords introduce a date or a time of day.
var dateWords = words(
	"reset at", "resets at", "reset on", "resets on", "resets", "access on", "access at", "available on", "available at", "again at", "again on", "until", "renews on", "renews at", "retry at", "after",
	"将在", "将于", "限额将在", "于", "在", "到",
)

// word is an introduction with its gram, for the filter.
type word struct {
	s    string
	gram uint16
}

func words(ss ...string) []word {
	ws := make([]word, len(ss))
	for i, s := range ss {
		ws[i] = word{s, gramOf(s)}
	}
	return ws
}

// proseHint reads a wait from human language. Its numbers must be introduced by words that speak
// of waiting: "within the last 5 minutes", "up to 15 minutes" and "in a minute" are none.
func proseHint(raw string, now time.Time, zone *time.Location) hint {
	if len(raw) > maxText {
		raw = raw[:maxText]
	}
	s := strings.ToLower(raw)
	if strings.IndexAny(s, "0123456789") < 0 {
		return hint{}
	}
	if h := afterBar(s, now); h.ok {
		return h
	}
	best := hint{}
	grams := gramsOf(s)
	for _, w := range dateWords {
		for at := 0; grams.may(w.gram); {
			i := strings.Index(s[at:], w.s)
			if i < 0 {
				break
			}
			at += i + len(w.s)
			if t, n := parseDate(s[at:], now, zone); n > 0 {
				h := hint{wait: t.Sub(now), until: t, source: "text", given: strings.TrimSpace(s[at : at+n]), prose: true, ok: true}
				if !best.ok || h.wait > best.wait {
					best = h
				}
			}
		}
	}
	if best.ok {
		return best
	}
	for _, w := range waitWords {
		for at := 0; grams.may(w.gram); {
			i := strings.Index(s[at:], w.s)
			if i < 0 {
				break
			}
			start := at + i
			at = start + len(w.s)
			if w.s[0] < 0x80 && start > 0 && isWord(s[start-1]) {
				continue
			}
			if d, n := parseSpoken(s[at:]); n > 0 {
				h := hint{wait: d, source: "text", given: strings.TrimSpace(s[start : at+n]), prose: true, ok: true}
				if !best.ok || h.wait > best.wait {
					best = h
				}
			}
		}
	}
	return best
}

// afterBar reads "usage limit reached|1783695600".
func afterBar(s string, now time.Time) hint {
	i := strings.LastIndexByte(s, '|')
	if i < 0 {
		return hint{}
	}
	v := strings.TrimSpace(s[i+1:])
	if len(v) < 10 || len(v) > 13 {
		return hint{}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return hint{}
	}
	t := time.Unix(n, 0)
	if len(v) == 13 {
		t = time.UnixMilli(n)
	}
	return hint{wait: t.Sub(now), until: t, source: "text", given: v, ok: true}
}

// spokenUnits are the units of prose, longest spellings first, in seconds.
var spokenUnits = [...]struct {
	word string
	secs float64
}{
	{"milliseconds", 1e-3}, {"millisecond", 1e-3}, {"msec", 1e-3}, {"ms", 1e-3}, {"毫秒", 1e-3},
	{"seconds", 1}, {"second", 1}, {"secs", 1}, {"sec", 1}, {"secondes", 1}, {"sekunden", 1}, {"секунд", 1}, {"秒钟", 1}, {"秒", 1}, {"초", 1},
	{"minutes", 60}, {"minute", 60}, {"mins", 60}, {"min", 60}, {"minuten", 60}, {"минут", 60}, {"分钟", 60}, {"分", 60}, {"분", 60},
	{"hours", 3600}, {"hour", 3600}, {"hrs", 3600}, {"hr", 3600}, {"stunden", 3600}, {"heures", 3600}, {"час", 3600}, {"个小时", 3600}, {"小时", 3600}, {"時間", 3600}, {"시간", 3600},
	{"days", 86400}, {"day", 86400}, {"天", 86400}, {"日", 86400}, {"일", 86400}, {"weeks", 604800}, {"week", 604800}, {"周", 604800},
	{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800},
}

// fillers may stand between the introduction and the number.
var fillers = [...]string{"about", "approximately", "around", "another", "at least", "in", "for", "after", "the next", "~", ":", "约", "大约", "(", "="}

// parseSpoken reads "18.642s", "8 hours 24 minutes", "1h43m56s" and how many bytes they took.
func parseSpoken(s string) (time.Duration, int) {
	i := skipSpace(s, 0)
	for again := true; again; {
		again = false
		for _, f := range fillers {
			if strings.HasPrefix(s[i:], f) {
				i = skipSpace(s, i+len(f))
				again = true
			}
		}
	}
	total, end := 0.0, 0
	for {
		j := i
		for j < len(s) && (s[j] >= '0' && s[j] <= '9' || s[j] == '.' && j+1 < len(s) && s[j+1] >= '0' && s[j+1] <= '9' || s[j] == ',' && j+3 < len(s) && s[j+1] >= '0' && s[j+1] <= '9' && s[j+2] >= '0' && s[j+2] <= '9') {
			j++
		}
		if j == i {
			break
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(s[i:j], ",", ""), 64)
		if err != nil {
			break
		}
		k := skipSpace(s, j)
		unit, width := spokenUnit(s[k:])
		if width == 0 {
			break
		}
		total += n * unit
		end = k + width
		i = skipSpace(s, end)
		for _, and := range [...]string{"and ", ", ", ","} {
			if strings.HasPrefix(s[i:], and) {
				i = skipSpace(s, i+len(and))
			}
		}
	}
	return fromSeconds(total), end
}

func spokenUnit(s string) (secs float64, width int) {
	for _, u := range spokenUnits {
		if strings.HasPrefix(s, u.word) {
			n := len(u.word)
			if u.word[0] < 0x80 && n < len(s) && (s[n] >= 'a' && s[n] <= 'z') {
				continue
			}
			return u.secs, n
		}
	}
	return 0, 0
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n') {
		i++
	}
	return i
}

var months = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// parseDate reads a date or time of day at the start of s: "2026-08-25 07:41:44", RFC 3339,
// "2026-02-01 at 00:00 utc", "feb 3, 2026, 5:00 pm", "3pm (america/new_york)", "00:00 utc". A
// date without a zone is in the provider's.
func parseDate(s string, now time.Time, zone *time.Location) (time.Time, int) {
	i := skipSpace(s, 0)
	for _, f := range [...]string{"at ", "on ", "the "} {
		if strings.HasPrefix(s[i:], f) {
			i += len(f)
		}
	}
	p := dateParser{s: s, i: i, zone: zone, l: now.In(zone)}
	if !p.date() {
		return time.Time{}, 0
	}
	return p.time, p.i
}

type dateParser struct {
	s    string
	i    int
	zone *time.Location
	l    time.Time // now, in the zone
	time time.Time
}

func (p *dateParser) number(maxDigits int) (int, bool) {
	j := p.i
	for j < len(p.s) && j-p.i < maxDigits && p.s[j] >= '0' && p.s[j] <= '9' {
		j++
	}
	if j == p.i {
		return 0, false
	}
	n, _ := strconv.Atoi(p.s[p.i:j])
	p.i = j
	return n, true
}

func (p *dateParser) eat(any string) bool {
	if p.i < len(p.s) && strings.IndexByte(any, p.s[p.i]) >= 0 {
		p.i++
		return true
	}
	return false
}

func (p *dateParser) date() bool {
	y, mo, d := p.l.Year(), p.l.Month(), p.l.Day()
	dated := false
	start := p.i
	if n, ok := p.number(4); ok && n >= 2000 && p.eat("-/") {
		m, ok1 := p.number(2)
		sep := p.eat("-/")
		day, ok2 := p.number(2)
		if !ok1 || !sep || !ok2 || m < 1 || m > 12 || day < 1 || day > 31 {
			return false
		}
		y, mo, d, dated = n, time.Month(m), day, true
	} else {
		p.i = start
		if n, m, ok := p.monthName(); ok {
			mo, d, dated = n, m, true
			save := p.i
			p.eat(",")
			p.eat(" ")
			if n, ok := p.number(4); ok && n >= 2000 {
				y = n
			} else {
				p.i = save
				if time.Date(y, mo, d, 23, 59, 59, 0, p.zone).Before(p.l) {
					y++
				}
			}
		}
	}
	save := p.i
	for p.eat(" t,") {
	}
	if strings.HasPrefix(p.s[p.i:], "at ") {
		p.i += 3
	}
	h, mi, sec, clock := p.clock(dated)
	if !clock {
		p.i = save
		if !dated {
			return false
		}
	}
	loc := p.zoneName()
	p.time = time.Date(y, mo, d, h, mi, sec, 0, loc)
	if !dated {
		in := p.l.In(loc)
		p.time = time.Date(in.Year(), in.Month(), in.Day(), h, mi, sec, 0, loc)
		if !p.time.After(p.l) {
			p.time = time.Date(in.Year(), in.Month(), in.Day()+1, h, mi, sec, 0, loc)
		}
	}
	return true
}

func (p *dateParser) monthName() (time.Month, int, bool) {
	for n, m := range months {
		if !strings.HasPrefix(p.s[p.i:], m) {
			continue
		}
		save := p.i
		for p.i < len(p.s) && p.s[p.i] >= 'a' && p.s[p.i] <= 'z' {
			p.i++
		}
		p.eat(".")
		p.eat(" ")
		if day, ok := p.number(2); ok && day >= 1 && day <= 31 {
			for _, th := range [...]string{"st", "nd", "rd", "th"} {
				if strings.HasPrefix(p.s[p.i:], th) {
					p.i += 2
				}
			}
			return time.Month(n + 1), day, true
		}
		p.i = save
	}
	return 0, 0, false
}

// clock reads "07:41:44.5", "5:00 pm", "3pm". Without a date before it a bare number is no time.
func (p *dateParser) clock(dated bool) (h, m, s int, ok bool) {
	save := p.i
	h, ok = p.number(2)
	if !ok || h > 24 {
		p.i = save
		return 0, 0, 0, false
	}
	colon := false
	if p.i < len(p.s) && p.s[p.i] == ':' {
		p.i++
		if m, colon = p.number(2); !colon || m > 59 {
			p.i = save
			return 0, 0, 0, false
		}
		if p.i < len(p.s) && p.s[p.i] == ':' {
			p.i++
			s, _ = p.number(2)
			if p.i+1 < len(p.s) && p.s[p.i] == '.' && p.s[p.i+1] >= '0' && p.s[p.i+1] <= '9' {
				p.i++
				p.number(9)
			}
		}
	}
	at := p.i
	p.eat(" ")
	switch rest := strings.ReplaceAll(p.s[p.i:min(len(p.s), p.i+4)], ".", ""); {
	case strings.HasPrefix(rest, "pm"):
		if h < 12 {
			h += 12
		}
		p.i += 2
	case strings.HasPrefix(rest, "am"):
		if h == 12 {
			h = 0
		}
		p.i += 2
	default:
		p.i = at
		if !colon {
			p.i = save
			return 0, 0, 0, false
		}
	}
	return h, m, s, true
}

// zoneName reads "z", "utc", "+08:00", "pst", "(america/new_york)".
func (p *dateParser) zoneName() *time.Location {
	save := p.i
	for p.eat(" ") {
	}
	rest := p.s[p.i:]
	for _, z := range [...]struct {
		name string
		loc  string
	}{{"utc", "UTC"}, {"gmt", "UTC"}, {"pst", "America/Los_Angeles"}, {"pdt", "America/Los_Angeles"}, {"pt", "America/Los_Angeles"}, {"est", "America/New_York"}, {"edt", "America/New_York"}, {"et", "America/New_York"}, {"beijing time", "Asia/Shanghai"}, {"北京时间", "Asia/Shanghai"}} {
		if strings.HasPrefix(rest, z.name) && (len(rest) == len(z.name) || !isWord(rest[len(z.name)])) {
			p.i += len(z.name)
			return location(z.loc)
		}
	}
	if strings.HasPrefix(rest, "z") && (len(rest) == 1 || !isWord(rest[1])) {
		p.i++
		return time.UTC
	}
	if len(rest) >= 3 && (rest[0] == '+' || rest[0] == '-') && rest[1] >= '0' && rest[1] <= '1' {
		neg := rest[0] == '-'
		p.i++
		if h, ok := p.number(2); ok && h <= 14 {
			p.eat(":")
			m, _ := p.number(2)
			off := h*3600 + m*60
			if neg {
				off = -off
			}
			return time.FixedZone("", off)
		}
	}
	if strings.HasPrefix(rest, "(") {
		if name, _, ok := strings.Cut(rest[1:], ")"); ok && len(name) < 40 {
			if l := zoneByName(name); l != nil {
				p.i += len(name) + 2
				return l
			}
		}
	}
	p.i = save
	return p.zone
}

// zoneByName finds "america/new_york", whose case was lost.
func zoneByName(name string) *time.Location {
	if name == "utc" || name == "gmt" {
		return time.UTC
	}
	b := []byte(name)
	up := true
	for i, c := range b {
		if up && c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
		up = c == '/' || c == '_' || c == '-'
	}
	if l, err := time.LoadLocation(string(b)); err == nil && strings.Contains(name, "/") {
		return l
	}
	return nil
}
