package jsonscan

// nesting remembers for each open container whether it is an object. The first 64 levels
// cost no allocation.
type nesting struct {
	depth int
	bits  uint64
	spill []uint64
}

func (n *nesting) push(object bool) {
	if n.depth&63 == 0 && n.depth > 0 {
		n.spill = append(n.spill, n.bits)
	}
	n.bits <<= 1
	if object {
		n.bits |= 1
	}
	n.depth++
}

func (n *nesting) pop() {
	n.depth--
	n.bits >>= 1
	if n.depth&63 == 0 && n.depth > 0 {
		n.bits = n.spill[len(n.spill)-1]
		n.spill = n.spill[:len(n.spill)-1]
	}
}

func (n *nesting) object() bool { return n.bits&1 != 0 }

// Skip moves past the next value, whatever it is, checks it, and returns its bytes.
func (s *Scanner) Skip() []byte {
	if s.err != nil {
		return nil
	}
	if !s.space() {
		s.fail("missing value")
		return nil
	}
	start := s.pos
	if c := s.data[s.pos]; c != '{' && c != '[' {
		s.scalar()
	} else {
		s.container()
	}
	if s.err != nil {
		return nil
	}
	return s.data[start:s.pos:s.pos]
}

// container moves past the array or object at s.pos.
func (s *Scanner) container() {
	var open nesting
	for {
		// s.pos is at the first byte of a value.
		switch c := s.data[s.pos]; c {
		case '{', '[':
			if open.depth == MaxDepth {
				s.fail("too deeply nested")
				return
			}
			s.pos++
			if !s.next() {
				return
			}
			if s.data[s.pos] != c+2 { // '{'+2 is '}', '['+2 is ']'
				open.push(c == '{')
				if c == '{' && !s.member() {
					return
				}
				continue
			}
			s.pos++
		default:
			s.scalar()
			if s.err != nil {
				return
			}
		}
		// A value ended: close what ends with it.
		for {
			if open.depth == 0 {
				return
			}
			if !s.next() {
				return
			}
			object := open.object()
			if s.data[s.pos] == ',' {
				s.pos++
				if !s.next() || object && !s.member() {
					return
				}
				break
			}
			if object && s.data[s.pos] != '}' || !object && s.data[s.pos] != ']' {
				s.fail("missing comma or closing bracket")
				return
			}
			s.pos++
			open.pop()
		}
	}
}

// next moves to the next byte that is not white space; it fails at the end of the text.
func (s *Scanner) next() bool {
	if s.space() {
		return true
	}
	s.fail("unexpected end of JSON")
	return false
}

// member reads a name and its colon and moves to the value.
func (s *Scanner) member() bool {
	if s.data[s.pos] != '"' {
		s.fail("missing string")
		return false
	}
	if s.rawString(); s.err != nil {
		return false
	}
	if !s.next() {
		return false
	}
	if s.data[s.pos] != ':' {
		s.fail("missing colon after a member's name")
		return false
	}
	s.pos++
	return s.next()
}

// scalar moves past a string, number or word.
func (s *Scanner) scalar() {
	switch s.data[s.pos] {
	case '"':
		s.rawString()
	case 't':
		s.word("true")
	case 'f':
		s.word("false")
	case 'n':
		s.word("null")
	default:
		s.number()
	}
}

func (s *Scanner) word(w string) {
	for i := range len(w) {
		if s.pos >= len(s.data) || s.data[s.pos] != w[i] {
			s.fail("not a JSON value")
			return
		}
		s.pos++
	}
}

// number moves past -?int frac? exp?.
func (s *Scanner) number() {
	if s.data[s.pos] == '-' {
		s.pos++
	}
	switch {
	case s.pos < len(s.data) && s.data[s.pos] == '0':
		s.pos++
	case !s.digits():
		s.fail("not a JSON value")
		return
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			s.fail("invalid number")
			return
		}
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			s.fail("invalid number")
		}
	}
}

func (s *Scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}
