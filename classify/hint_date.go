package classify

import (
	"strconv"
	"strings"
	"time"
)

var months = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// parseDate reads a date or time of day at the start of s: "2026-08-25 07:41:44", RFC 3339,
// "2026-02-01 at 00:00 utc", "feb 3, 2026, 5:00 pm", "3pm (america/new_york)", "00:00 utc". A
// date without a zone is in the provider's.
func parseDate(s string, now time.Time, zone *time.Location) (time.Time, int) {
	i := skipSpace(s, 0)
	if i < len(s) && s[i] == ':' {
		i = skipSpace(s, i+1)
	}
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
	h, mi, sec, clock := p.clock()
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

// clock reads "07:41:44.5", "5:00 pm", "3pm". A bare number is no time.
func (p *dateParser) clock() (h, m, s int, ok bool) {
	save := p.i
	if strings.HasPrefix(p.s[p.i:], "midnight") {
		p.i += len("midnight")
		return 0, 0, 0, true
	}
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
	}{{"utc", "UTC"}, {"gmt", "UTC"}, {"pst", "America/Los_Angeles"}, {"pdt", "America/Los_Angeles"}, {"pt", "America/Los_Angeles"}, {"pacific", "America/Los_Angeles"}, {"est", "America/New_York"}, {"edt", "America/New_York"}, {"et", "America/New_York"}, {"beijing time", "Asia/Shanghai"}, {"北京时间", "Asia/Shanghai"}} {
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
