package openai

import "bytes"

// repeat knows the last event that had content and nothing else of interest. Most events of a
// stream differ from the one before in the text of one "content" alone; such an event means the
// same, and comparing bytes costs a tenth of reading them.
type repeat struct {
	before, after []byte // what encloses the text
	misses        int    // in a row
}

// contentKey can stand nowhere but before a member's value: within a string its quotes would be
// escaped.
const contentKey = `"content":"`

// maxMisses is after how many events that were no repetition learning is given up: some services
// vary every event.
const maxMisses = 8

// matches reports whether the event repeats the known one with another text that is not empty.
func (r *repeat) matches(data []byte) bool {
	if len(r.before) == 0 || len(data) <= len(r.before)+len(r.after) || !bytes.HasPrefix(data, r.before) {
		return false
	}
	text := data[len(r.before):]
	end := plainText(text)
	return end > 0 && bytes.Equal(text[end:], r.after)
}

// learn takes an event that carried content and neither a finish reason, a tool call, an error nor
// usage.
func (r *repeat) learn(data []byte) {
	if r.misses >= maxMisses {
		return
	}
	r.misses++
	i := bytes.Index(data, []byte(contentKey))
	if i < 0 {
		return
	}
	start := i + len(contentKey)
	end := plainText(data[start:])
	if end == 0 {
		return
	}
	r.before = append(r.before[:0], data[:start]...)
	r.after = append(r.after[:0], data[start+end:]...)
}

// plainText returns the length of the text up to its closing quote, and 0 when it is empty, has no
// end, or holds what only a reader of JSON can judge.
func plainText(b []byte) int {
	for i, c := range b {
		switch {
		case c == '"':
			return i
		case c < ' ' || c == '\\' || c >= 0x80:
			return 0
		}
	}
	return 0
}
