package resilience

import (
	"encoding/json"
	"strings"
)

// parseDetail reads a record's detail. A restart reads as many as there are exclusions, so what the
// engine usually writes is read by hand; everything else is left to encoding/json, whose word counts.
func parseDetail(text string) (detail, error) {
	if text == "" {
		return detail{}, nil
	}
	if d, ok := plainDetail(text); ok {
		return d, nil
	}
	var d detail
	err := json.Unmarshal([]byte(text), &d)
	return d, err
}

// plainDetail reads an object of plain texts, numbers, booleans and lists of numbers, without white
// space. ok is false for anything else, valid or not.
func plainDetail(text string) (d detail, ok bool) {
	s := plainJSON{text}
	if !s.skip('{') {
		return d, false
	}
	for {
		key, ok := s.text()
		if !ok || !s.skip(':') {
			return d, false
		}
		switch key {
		case "rule":
			d.Rule, ok = s.text()
			d.Rule = strings.Clone(d.Rule) // it would keep its record alive
		case "credential":
			d.Credential, ok = s.text()
			d.Credential = strings.Clone(d.Credential)
		case "quarantined":
			d.Quarantined, ok = s.bool()
		case "suspected":
			d.Suspected, ok = s.bool()
		case "base_ms":
			d.BaseMs, ok = s.number()
		case "failed_ms":
			d.FailedMs, ok = s.number()
		case "rechecked_ms":
			d.RecheckedMs, ok = s.number()
		case "recent_ms":
			d.RecentMs, ok = s.numbers()
		default:
			return d, false // rare ones
		}
		switch {
		case !ok:
			return d, false
		case s.skip('}'):
			return d, s.rest == ""
		case !s.skip(','):
			return d, false
		}
	}
}

// plainJSON is the rest of a text that is read from its beginning.
type plainJSON struct{ rest string }

func (s *plainJSON) skip(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text reads a string of printable ASCII without escapes.
func (s *plainJSON) text() (string, bool) {
	if !s.skip('"') {
		return "", false
	}
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			value := s.rest[:i]
			s.rest = s.rest[i+1:]
			return value, true
		case c == '\\' || c < ' ' || c > '~':
			return "", false
		}
	}
	return "", false
}

// number reads an integer of at most 18 digits that is not below 0.
func (s *plainJSON) number() (n int64, ok bool) {
	i := 0
	for i < len(s.rest) && i < 19 && s.rest[i] >= '0' && s.rest[i] <= '9' {
		n = n*10 + int64(s.rest[i]-'0')
		i++
	}
	if i == 0 || i == 19 || s.rest[0] == '0' && i > 1 {
		return 0, false
	}
	s.rest = s.rest[i:]
	return n, true
}

// numbers reads a list of at least one number.
func (s *plainJSON) numbers() (list []int64, ok bool) {
	if !s.skip('[') {
		return nil, false
	}
	list = make([]int64, 0, 4)
	for {
		n, ok := s.number()
		if !ok {
			return nil, false
		}
		list = append(list, n)
		switch {
		case s.skip(']'):
			return list, true
		case !s.skip(','):
			return nil, false
		}
	}
}

func (s *plainJSON) bool() (value, ok bool) {
	for _, value := range [...]bool{true, false} {
		word := "false"
		if value {
			word = "true"
		}
		if rest, ok := strings.CutPrefix(s.rest, word); ok {
			s.rest = rest
			return value, true
		}
	}
	return false, false
}
