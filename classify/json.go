package classify

import (
	"strings"
	"unicode/utf8"
)

// The reader below is more lenient than encoding/json on purpose: error bodies come cut short,
// printed by Python, or followed by other things, and what can be read of them still tells.

const (
	maxNodes = 4096
	maxDepth = 24
)

type nodeKind uint8

const (
	nNull nodeKind = iota
	nBool
	nNumber
	nString
	nArray
	nObject
)

// node is one JSON value. val is the text of a scalar, unescaped for strings. child and next
// are indexes into the document; 0 is none, since the root is nobody's child.
type node struct {
	kind        nodeKind
	key, val    string
	child, next int32
}

// document is a parsed body. cut says that it ended before its value did.
type document struct {
	nodes []node
	cut   bool
}

// parseJSON reads the value at the start of s and returns what follows it.
func parseJSON(s string) (d document, rest string, ok bool) {
	p := jsonParser{s: s}
	p.space()
	if p.i >= len(s) {
		return d, "", false
	}
	switch s[p.i] {
	case '{', '[', '"', 'n', 't', 'f', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
	default:
		return d, s, false
	}
	p.nodes = make([]node, 0, 24)
	if p.value(0) < 0 {
		return d, s, false
	}
	return document{p.nodes, p.cut}, s[p.i:], true
}

// root returns the document's value.
func (d *document) root() *node { return &d.nodes[0] }

// get returns the member of that name, nil when n is no object or has none. Names are compared
// without case.
func (d *document) get(n *node, key string) *node {
	if n == nil || n.kind != nObject {
		return nil
	}
	for i := n.child; i != 0; i = d.nodes[i].next {
		if strings.EqualFold(d.nodes[i].key, key) {
			return &d.nodes[i]
		}
	}
	return nil
}

// path follows members by name.
func (d *document) path(n *node, keys ...string) *node {
	for _, k := range keys {
		n = d.get(n, k)
	}
	return n
}

// first returns the first element or member.
func (d *document) first(n *node) *node {
	if n == nil || n.child == 0 {
		return nil
	}
	return &d.nodes[n.child]
}

// each calls f for every element or member.
func (d *document) each(n *node, f func(*node)) {
	if n == nil {
		return
	}
	for i := n.child; i != 0; i = d.nodes[i].next {
		f(&d.nodes[i])
	}
}

type jsonParser struct {
	s     string
	i     int
	nodes []node
	cut   bool
}

func (p *jsonParser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\r', '\n':
			p.i++
		default:
			return
		}
	}
}

// value parses one value and returns its index, or -1 when there is none.
func (p *jsonParser) value(depth int) int32 {
	p.space()
	if p.i >= len(p.s) {
		p.cut = true
		return -1
	}
	if len(p.nodes) >= maxNodes || depth > maxDepth {
		p.cut, p.i = true, len(p.s)
		return -1
	}
	at := int32(len(p.nodes))
	switch c := p.s[p.i]; c {
	case '{', '[':
		p.nodes = append(p.nodes, node{kind: nArray})
		if c == '{' {
			p.nodes[at].kind = nObject
		}
		p.i++
		p.members(at, c == '{', depth)
	case '"', '\'':
		p.nodes = append(p.nodes, node{kind: nString})
		p.nodes[at].val = p.str(c)
	default:
		start := p.i
		for p.i < len(p.s) && !strings.ContainsRune(" \t\r\n,:]}{[\"", rune(p.s[p.i])) {
			p.i++
		}
		if p.i == start {
			return -1
		}
		p.nodes = append(p.nodes, scalar(p.s[start:p.i]))
	}
	return at
}

func scalar(word string) node {
	switch word {
	case "null", "None", "undefined", "NaN":
		return node{kind: nNull}
	case "true", "True", "false", "False":
		return node{kind: nBool, val: strings.ToLower(word)}
	}
	return node{kind: nNumber, val: word}
}

func (p *jsonParser) members(at int32, object bool, depth int) {
	last := int32(0)
	for {
		p.space()
		if p.i >= len(p.s) {
			p.cut = true
			return
		}
		switch p.s[p.i] {
		case ',':
			p.i++
			continue
		case '}', ']':
			p.i++
			return
		}
		key := ""
		if object {
			switch c := p.s[p.i]; c {
			case '"', '\'':
				key = p.str(c)
			default:
				p.cut, p.i = true, len(p.s)
				return
			}
			p.space()
			if p.i >= len(p.s) || p.s[p.i] != ':' {
				p.cut, p.i = true, len(p.s)
				return
			}
			p.i++
		}
		child := p.value(depth + 1)
		if child < 0 {
			p.cut, p.i = true, len(p.s)
			return
		}
		p.nodes[child].key = key
		if last == 0 {
			p.nodes[at].child = child
		} else {
			p.nodes[last].next = child
		}
		last = child
	}
}

// str reads a string that starts at its quote.
func (p *jsonParser) str(quote byte) string {
	p.i++
	start := p.i
	escaped := false
	for p.i < len(p.s) {
		window := p.s[p.i:]
		j := strings.IndexByte(window, quote)
		if j >= 0 {
			window = window[:j]
		}
		if k := strings.IndexByte(window, '\\'); k >= 0 {
			escaped = true
			p.i = min(p.i+k+2, len(p.s))
			continue
		}
		if j < 0 {
			break
		}
		end := p.i + j
		p.i = end + 1
		return unescape(p.s[start:end], escaped)
	}
	p.cut, p.i = true, len(p.s)
	return unescape(p.s[start:], escaped)
}

func unescape(s string, escaped bool) string {
	if !escaped {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 >= len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		switch s[i] {
		case 'n', 'r':
			b.WriteByte('\n')
		case 't':
			b.WriteByte(' ')
		case 'b', 'f':
		case 'u':
			r, ok := hex4(s[i+1:])
			if !ok {
				continue
			}
			i += 4
			if r >= 0xD800 && r < 0xDC00 && strings.HasPrefix(s[i+1:], `\u`) {
				if low, ok := hex4(s[i+3:]); ok && low >= 0xDC00 && low < 0xE000 {
					r = (r-0xD800)<<10 + (low - 0xDC00) + 0x10000
					i += 6
				}
			}
			b.WriteString(string(r))
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return utf8.RuneError, false
	}
	var r rune
	for i := range 4 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return utf8.RuneError, false
		}
	}
	return r, true
}
