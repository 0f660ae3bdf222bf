package dialect

import (
	"bytes"
	"strconv"

	"omniroute/internal/dialect/jsonscan"
)

// Messages is what has to be known of a request to go on from the beginning of its answer.
type Messages struct {
	body []byte
	end  int // where the list of messages ends, 0 without one
	// LastRole is the role of the last message. Many says that there are several lists.
	LastRole string
	Many     bool
	limits   []limit
}

type limit struct {
	Span
	tokens int64
}

// ReadMessages reads a request whose messages are in "messages". limits names the members that
// bound the answer, and look is asked about every other member that has a value: false makes the
// whole request unfit.
func ReadMessages(body []byte, limits []string, look func(key string, value []byte) bool) (*Messages, bool) {
	m := &Messages{body: body}
	s := jsonscan.New(body)
	fit := true
	for ok := s.Object(); ok; ok = s.More('}') {
		key := string(s.Key())
		if key == "messages" && s.Peek() == '[' {
			m.Many = m.end > 0
			for ok := s.Array(); ok; ok = s.More(']') {
				m.LastRole = ""
				for ok := s.Object(); ok; ok = s.More('}') {
					if key := s.Key(); string(key) == "role" {
						m.LastRole = string(s.Text())
					} else {
						s.Skip()
					}
				}
			}
			m.end = s.Pos() - 1
			continue
		}
		s.Peek()
		start := s.Pos()
		value := s.Skip()
		bounds := false
		for _, name := range limits {
			if n, err := strconv.ParseInt(string(value), 10, 64); name == key && err == nil {
				m.limits = append(m.limits, limit{Span{start, s.Pos()}, n})
				bounds = true
			}
		}
		if !bounds && jsonscan.Truthy(value) {
			fit = look(key, value) && fit
		}
	}
	return m, fit && s.End() == nil && m.end > 0 && !m.Many
}

// Append returns the body with one more message, limits that are lower by spent tokens, and
// further members at its end. It reports false when a limit leaves nothing.
func (m *Messages) Append(message []byte, spent int64, members string) ([]byte, bool) {
	out := make([]byte, 0, len(m.body)+len(message)+len(members)+8)
	at := 0
	insert := func() {
		out = append(out, m.body[at:m.end]...)
		if m.LastRole != "" || bytes.TrimSpace(m.body[:m.end])[len(bytes.TrimSpace(m.body[:m.end]))-1] != '[' {
			out = append(out, ',')
		}
		out, at = append(out, message...), m.end
	}
	for _, l := range m.limits {
		if l.tokens <= spent {
			return nil, false
		}
		if at < m.end && l.Start > m.end {
			insert()
		}
		out = strconv.AppendInt(append(out, m.body[at:l.Start]...), l.tokens-spent, 10)
		at = l.End
	}
	if at < m.end {
		insert()
	}
	close := bytes.LastIndexByte(m.body, '}')
	out = append(out, m.body[at:close]...)
	if members != "" {
		out = append(append(out, ','), members...)
	}
	return append(out, m.body[close:]...), true
}
