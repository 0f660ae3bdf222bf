package classify

import (
	"strconv"
	"strings"
	"time"
)

// waitWords introduce a duration; what stands between them and the number is a few words at most.
var waitWords = words(
	"try again in", "try again after", "try again once", "tried again in", "retry in", "retry after", "retry again in", "retry again after", "retried in", "retried after", "again after",
	"wait for", "wait at least", "please wait", "must wait", "wait", "reset after", "resets after", "reset in", "resets in", "will reset in", "renews in", "replenished in", "refreshes in", "refresh in", "refreshed in", "renewed in", "restored in", "replenishes in",
	"available in", "available again in", "available after", "retry-after:", "retry_after:", "retry after:", "retry-after", "back in", "again in", "expires in", "cooldown of", "backoff for", "back off for",
	"请在", "请于", "将于", "请等待", "等待", "请", "将在", "剩余", "再过", "après", "dans", "через", "in etwa", "erneut in", "es in", "nuevo en", "dentro de", "novamente em", "riprova tra", "あと",
)

// dateWords introduce a date or a time of day.
var dateWords = words(
	"reset at", "resets at", "reset on", "resets on", "resets", "access on", "access at", "available on", "available at", "again at", "again on", "until", "renews on", "renews at", "retry at", "allowed at", "allowed again at", "after",
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
	if !strings.ContainsAny(s, "0123456789") && !strings.Contains(s, "midnight") {
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
			d, n := parseSpoken(s[at:])
			if n == 0 && strings.HasPrefix(w.s, "retry") {
				d, n = bareSeconds(s[at:])
			}
			if n > 0 {
				h := hint{wait: d, source: "text", given: strings.TrimSpace(s[start : at+n]), prose: true, ok: true}
				if !best.ok || h.wait > best.wait {
					best = h
				}
			}
		}
	}
	if !best.ok {
		best = spokenAfter(s)
	}
	return best
}

// spokenAfter reads a duration that words after it call a wait, as Chinese, Japanese and Korean put
// it: "30秒後に再試行", "20초 후".
func spokenAfter(s string) hint {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' || i > 0 && (isWord(s[i-1]) || s[i-1] == '.') {
			continue
		}
		d, n := parseSpoken(s[i:])
		if n == 0 {
			continue
		}
		rest := s[skipSpace(s, i+n):]
		if strings.HasPrefix(rest, "後") || strings.HasPrefix(rest, "后") || strings.HasPrefix(rest, "후") {
			return hint{wait: d, source: "text", given: s[i : i+n], prose: true, ok: true}
		}
	}
	return hint{}
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
	{"seconds", 1}, {"second", 1}, {"secs", 1}, {"sec", 1}, {"secondes", 1}, {"segundos", 1}, {"segundo", 1}, {"secondi", 1}, {"sekunden", 1}, {"секунд", 1}, {"秒钟", 1}, {"秒", 1}, {"초", 1},
	{"minutes", 60}, {"minute", 60}, {"mins", 60}, {"min", 60}, {"minuten", 60}, {"minutos", 60}, {"minuti", 60}, {"минут", 60}, {"分钟", 60}, {"分", 60}, {"분", 60},
	{"hours", 3600}, {"hour", 3600}, {"hrs", 3600}, {"hr", 3600}, {"stunden", 3600}, {"horas", 3600}, {"heures", 3600}, {"час", 3600}, {"个小时", 3600}, {"小时", 3600}, {"時間", 3600}, {"시간", 3600},
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
		if d, w := clockSpan(s[i:]); w > 0 && end == 0 {
			return d, i + w
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

// bareSeconds reads the number that ends a clause without a unit: "retry after 35".
func bareSeconds(s string) (time.Duration, int) {
	i := skipSpace(s, 0)
	if i < len(s) && (s[i] == ':' || s[i] == '=') {
		i = skipSpace(s, i+1)
	}
	j := i
	for j < len(s) && s[j] >= '0' && s[j] <= '9' {
		j++
	}
	if j == i || j-i > 6 {
		return 0, 0
	}
	if rest := s[j:]; rest != "" && rest[0] != '\n' && (!isStop(rest[0]) || rest[0] == ':' || len(rest) > 1 && rest[1] > ' ') {
		return 0, 0
	}
	n, err := strconv.Atoi(s[i:j])
	if err != nil {
		return 0, 0
	}
	return time.Duration(n) * time.Second, j
}

// clockSpan reads a duration that is written as a clock: "02:10:03", "2.10:03:04" with days.
func clockSpan(s string) (time.Duration, int) {
	total, i := 0, 0
	for part, secs := range [...]int{86400, 3600, 60, 1} {
		j := i
		for j < len(s) && j-i < 3 && s[j] >= '0' && s[j] <= '9' {
			j++
		}
		n, err := strconv.Atoi(s[i:j])
		if err != nil {
			return 0, 0
		}
		if part == 0 && (j >= len(s) || s[j] != '.') {
			continue
		}
		total += n * secs
		if i = j; part == 3 {
			return time.Duration(total) * time.Second, i
		}
		if i >= len(s) || part == 0 != (s[i] == '.') || part > 0 && s[i] != ':' {
			return 0, 0
		}
		i++
	}
	return 0, 0
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
