package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// check compares a value with what may stand in its place: keys, shapes, words and ranges. A value that it reports is
// marked bad, so that what is built of the rest can leave it out.
func (p *problems) check(n *node, s *spec) {
	if n.bad {
		return
	}
	form, fits := s.takes(n)
	nested := form.kind == kindObject || form.kind == kindMap
	if n.shape.scalar() && !nested {
		n.secret = form.kind == kindSecret
		n.public = !form.private() || form.kind == kindURL && !strings.ContainsAny(n.raw, "@?") ||
			form.kind == kindFile && (strings.Contains(n.raw, "/") || !likeSecret(n.raw))
	}
	// What stands in a mapping's place is a line that slipped, perhaps a secret's.
	if !fits && !form.private() && !nested {
		n.publish()
	}
	switch {
	case !fits && n.shape == shapeNull:
		p.errorf(n, "there is no value; write %s, or remove the key", s.words())
		return
	case !fits && form.kind == kindDuration, !fits && form.kind == kindSize, !fits && form.kind == kindShare:
		p.errorf(n, "this must be %s, not %s", s.words(), n.shape)
		return
	case !fits && n.shape.scalar() && form.kind <= kindEnum:
		p.errorf(n, "this must be a string, not %s; put it in quotes", n.shape)
		return
	case !fits && form.kind == kindList && n.shape == shapeString:
		p.errorf(n, "this must be a list, not a string; put it in [ ] or behind a dash")
		return
	case !fits && n.plain && form.kind == kindInt && looksNumeric(n.raw):
		p.errorf(n, "%s is no number that can be used here; write a whole number in digits, such as 5", quote(n.shown()))
		return
	case !fits:
		p.errorf(n, "this must be %s, not %s", s.words(), n.shape)
		return
	}
	if n.folded && !n.secret {
		// Nothing but a key is that long. Mostly this is a line that lost its name, and it may
		// have been a secret's.
		n.public = false
		p.errorf(n, "this value goes on in the next line; write it in one line, and check that each line below has its key")
		return
	}
	if n.plain && strings.Contains(n.raw, ": ") && !n.secret {
		n.public = false
		p.errorf(n, "a comma or line break is missing within this value, before the next \"key: \"; add it, or put the text in quotes")
		return
	}
	switch form.kind {
	case kindObject:
		p.checkObject(n, form)
	case kindMap:
		if form.nonEmpty && len(n.entries) == 0 {
			p.errorf(n, "there is nothing here; add an entry, such as\n    %s", lineOf(n.path))
			return
		}
		for i := range n.entries {
			e := &n.entries[i]
			if len(form.enum) > 0 && !p.checkKind(n, e, form) {
				e.value.bad = true
				e.value.publish() // a cooldown, whatever its name
				continue
			}
			p.check(e.value, form.elem)
		}
	case kindList:
		if form.nonEmpty && len(n.items) == 0 {
			p.errorf(n, "the list is empty; add an entry, or remove the key")
			return
		}
		for _, item := range n.items {
			p.check(item, form.elem)
		}
	default:
		p.checkScalar(n, form)
	}
}

func (p *problems) checkObject(n *node, s *spec) {
	for i := range n.entries {
		e := &n.entries[i]
		f := s.field(e.key)
		switch {
		case f == nil && likeSecret(e.key):
			e.value.bad = true
			n.dropped = append(n.dropped, &node{shape: shapeString, pos: e.pos, raw: e.key, text: e.key, bad: true})
			p.errorAt(e.pos, n.path, "this is no key that can stand here; check the lines above and below, one of them may have lost its indentation")
		case f == nil:
			e.value.bad = true
			p.errorAt(e.pos, n.path, "unknown key %s%s", quote(e.key), didYouMeanKey(e.key, s))
		default:
			p.check(e.value, &f.spec)
		}
	}
	for _, f := range s.fields {
		if f.required && n.get(f.key) == nil {
			where := n.pos
			p.errorAt(where, n.path, "the key %s is missing; add it, such as\n    %s", f.key, f.line())
			n.bad = true
		}
	}
}

// lineOf is line for a key at the top of the file.
func lineOf(key string) string {
	if f := root.field(key); f != nil {
		return f.line()
	}
	return key + ": …"
}

// likeSecret reports whether a text that stands where a name should could be a key or token that slipped.
func likeSecret(text string) bool {
	return len(text) >= 12 && strings.ContainsAny(text, "0123456789")
}

// didYouMeanKey suggests the nearest key, or says which there are.
func didYouMeanKey(key string, s *spec) string {
	var keys []string
	for _, f := range s.fields {
		keys = append(keys, f.key)
	}
	if near := didYouMean(key, keys); near != "" {
		return near
	}
	if s.hasFields(relayFields) && (&spec{fields: comboFields}).field(key) != nil {
		return "; it is a combo's own: set it under combos, such as\n    NAME: {" + key + ": …, targets: […]}"
	}
	if s.hasFields(comboFields) && (key == "connect_timeout" || key == "queue") {
		return "; it is the same for all requests: set it under relay"
	}
	return "; remove it, or use one of " + strings.Join(keys, ", ")
}

// line is the key with a value, for a message that shows what to add.
func (f *field) line() string {
	switch {
	case f.key == "providers":
		return "providers:\n      openai:\n        connections:\n          - {id: main, api_key: \"${OPENAI_API_KEY}\"}"
	case f.example != "":
		return f.key + ": " + f.example
	}
	return f.key + ": " + or(f.def, "…")
}

func (p *problems) checkScalar(n *node, s *spec) {
	if n.absent && s.kind == kindSecret {
		return // the place that uses it decides
	}
	switch s.kind {
	case kindEnum:
		p.checkWord(n, s)
	case kindSecret:
		if n.text == "" {
			p.errorf(n, "the value is empty; write one, or ${NAME:-} if it may be missing")
		} else if bareVariable.MatchString(n.raw) {
			p.warnf(n, "it is taken as it stands here, dollar sign and all; if a variable is meant, write ${NAME}")
		}
	case kindInt:
		if contains(s.enum, n.text) {
			return
		}
		i, ok := n.int()
		if !ok || n.shape == shapeString && !n.expanded {
			p.errorf(n, "%s is not a whole number%s; write one, such as 5", quote(n.shown()), orWords(s))
			return
		}
		p.checkRange(n, s, float64(i))
	case kindNumber:
		f, ok := n.number()
		if !ok {
			p.errorf(n, "%s is not a number; write one, such as 1.5", quote(n.shown()))
			return
		}
		p.checkRange(n, s, f)
	case kindBool:
		if n.text != "true" && n.text != "false" {
			p.errorf(n, "%s is neither true nor false; write one of the two", quote(n.shown()))
		}
	case kindDuration:
		p.checkDuration(n, s)
	case kindSize:
		if size, ok := parseSize(n.text); !ok || size < 1 {
			p.errorf(n, "%s is not a size; write one above 0 such as 64MiB, 10MB or a number of bytes", quote(n.shown()))
		}
	case kindShare:
		switch f, ok := parseShare(n.text); {
		case !ok || f < 0 || f > 1:
			p.errorf(n, "%s is not a share; write a number from 0 to 1, or a percentage such as 10%%", quote(n.shown()))
		case f == 0 && s.min > 0:
			p.errorf(n, "%s means nothing here; write a share above 0 such as 10%%, or remove the key for the default", n.shown())
		}
	}
}

// bareVariable is a variable as shells write it, which this format has no meaning for.
var bareVariable = regexp.MustCompile(`^\$[A-Z][A-Z0-9_]*$`)

func (p *problems) checkWord(n *node, s *spec) {
	if !contains(s.enum, n.text) {
		p.errorf(n, "%s is not one of %s%s", quote(n.shown()), strings.Join(s.enum, ", "), didYouMean(n.text, s.enum))
	}
}

func (p *problems) checkRange(n *node, s *spec, v float64) {
	switch {
	case v < s.min && s.max > 0, s.max > 0 && v > s.max:
		p.errorf(n, "%s is out of range; write a number from %v to %s", n.shown(), s.min, strconv.FormatFloat(s.max, 'f', -1, 64))
	case v < s.min:
		p.errorf(n, "%s is too small; write at least %v", n.shown(), s.min)
	}
}

func (p *problems) checkDuration(n *node, s *spec) {
	if contains(s.enum, n.text) {
		return
	}
	d, ok := n.duration()
	switch {
	case !ok && (n.shape == shapeInt || n.shape == shapeFloat) && looksNumeric(n.shown()):
		p.errorf(n, "%s has no unit; write %ss for seconds, or ms, m, h", n.shown(), n.shown())
	case !ok:
		p.errorf(n, "%s is not a duration%s; write one such as 500ms, 30s, 5m or 1h30m", quote(n.shown()), orWords(s))
	case d < 0:
		p.errorf(n, "%s is negative; write a duration such as 30s", n.shown())
	case d == 0 && s.min > 0:
		p.errorf(n, "%s means nothing here; write a duration above 0, or remove the key for the default", n.shown())
	case d > maxDuration:
		p.errorf(n, "%s is more than a year; write at most %s", n.shown(), "8784h")
	}
}

// looksNumeric reports whether a text was meant as a number, in whatever way it is written or however large it is.
func looksNumeric(text string) bool {
	text = strings.TrimLeft(text, "+-")
	return text != "" && text[0] >= '0' && text[0] <= '9' && strings.Trim(text, "0123456789abcdefxoABCDEFXO_.+-") == ""
}

func orWords(s *spec) string {
	if len(s.enum) == 0 {
		return ""
	}
	return ", nor " + strings.Join(s.enum, " or ")
}

// The values of a scalar. Each is false when it is no such value.

func (n *node) int() (int, bool) {
	i, err := strconv.ParseInt(n.text, 10, 64)
	return int(i), err == nil && int64(int(i)) == i
}

func (n *node) number() (float64, bool) {
	f, err := strconv.ParseFloat(n.text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

func (n *node) duration() (time.Duration, bool) {
	d, err := time.ParseDuration(n.text)
	return d, err == nil
}

var (
	sizeForm  = regexp.MustCompile(sizePattern)
	shareForm = regexp.MustCompile(sharePattern)
)

var units = map[string]float64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9}

// parseSize reads a number of bytes with or without a unit, at most 1 TiB.
func parseSize(text string) (int64, bool) {
	m := sizeForm.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if f *= units[m[3]]; err != nil || f > 1<<40 {
		return 0, false
	}
	return int64(f), true
}

// parseShare reads 0.1 or 10%.
func parseShare(text string) (float64, bool) {
	if !shareForm.MatchString(text) {
		return 0, false
	}
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	return f, err == nil
}
