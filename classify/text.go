package classify

import (
	"strings"
	"unicode/utf8"
)

const (
	maxText    = 4 << 10 // of one message
	maxAllText = 8 << 10 // of all messages together
	maxGap     = 120     // bytes that a "*" of a pattern stands for
)

// plainWords turns a message into the text that rules are matched against: lower case, spaces
// collapsed, typographic quotes straightened, and quoted parts emptied, for what an upstream
// puts in quotes are names, values and echoes, never its own words.
func plainWords(b []byte, s string) []byte {
	s = s[:min(len(s), maxText)]
	start := len(b)
	space := true
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch r {
			case '‘', '’':
				b = append(b, '\'')
			case '“', '「', '『', '«', '‹', '《':
				if end := strings.Index(s[i:], closing[r]); end > 0 {
					b = append(b, '\'', '\'')
					i += end + len(closing[r])
					space = false
					continue
				}
				b = append(b, '"')
			case '”':
				b = append(b, '"')
			case '\u00a0', '\u3000':
				b = append(b, ' ')
			case '。':
				b = append(b, ". "...)
			case '：':
				b = append(b, ':')
			case '，':
				b = append(b, ", "...)
			case utf8.RuneError:
				b = append(b, '?')
			default:
				b = append(b, s[i:i+n]...)
			}
			i += n
			space = false
			continue
		case c == '"' || c == '`' || c == '\'' && opensQuote(s, i):
			if end := closeQuote(s, i, c); end > 0 {
				b = append(b, '\'', '\'')
				i = end + 1
				space = false
				continue
			}
			b = append(b, c)
			space = false
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\''):
			// An escaped quote is a quote: the message was quoted once more by a relay.
			i++
			continue
		case c <= ' ':
			if c == '\n' && !space && len(b) > start {
				b = append(b, '.')
			}
			if !space {
				b = append(b, ' ')
			}
			space = true
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
			space = false
		default:
			b = append(b, c)
			space = false
		}
		i++
	}
	return b
}

// closing are the ends of quotations that begin with a sign of their own.
var closing = map[rune]string{'“': "”", '「': "」", '『': "』", '«': "»", '‹': "›", '《': "》"}

// opensQuote tells a single quote from an apostrophe.
func opensQuote(s string, i int) bool {
	return (i == 0 || !isWord(s[i-1])) && i+1 < len(s) && s[i+1] > ' '
}

// closeQuote returns where the quote that opens at i ends, 0 when it never does. A quotation
// may hold quotations: what follows a space and begins a word opens one more.
func closeQuote(s string, i int, q byte) int {
	depth := 1
	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] != q:
		case q == '\'' && j+1 < len(s) && isWord(s[j+1]):
			// An apostrophe.
		case q != '\'' && s[j-1] <= ' ' && j+1 < len(s) && s[j+1] > ' ' && s[j+1] != q && !isStop(s[j+1]):
			depth++
		default:
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return 0
}

func isStop(c byte) bool {
	return c == '.' || c == ',' || c == ';' || c == ')' || c == '?' || c == '!' || c == ':'
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// echoIntro are the words after which a complaint about the request's content repeats it. What
// follows them is the caller's text and not the upstream's.
var echoIntro = patterns(
	"invalid *:", "malformed*:", "unexpected*:", "could not *:", "cannot *:", "unable to *:", "failed to *:", "unrecognized*:",
	"unknown *:", "no such *:", "unsupported *:", "validation error*:", "extra *:", "bad *:", "illegal *:", "wrong *:",
	"your prompt*:", "your message*:", "your input*:", "the prompt*:", "the message*:", "the input*:", "prompt:", "content:",
	"user message:", "input_value=", "but got ", ", got ", "received:", "you sent:", "near:",
)

// parserIntro are the words of a parser that quotes what it could not read, whatever the status
// that its failure is sent with.
var parserIntro = patterns(
	"parse error*:", "parsing *:", "failed to parse*:", "unable to parse*:", "could not parse*:", "cannot parse*:", "syntax error*:",
	"failed to decode*:", "failed to convert*:", "failed to deserialize*:", "failed to compile*:", "failed to apply*:", "invalid json*:",
	"grammar*:", "template*:", "unexpected token*:", "last read:", "input_value=",
)

// ownLines drops the lines that follow a parser's complaint: it shows there what it was given.
func ownLines(s string) string {
	head, _, more := strings.Cut(s, "\n")
	if !more {
		return s
	}
	low := strings.ToLower(head)
	for _, w := range [...]string{"pars", "json", "unexpected", "invalid", "validation", "syntax", "grammar", "template", "schema", "regex", "decod", "unknown", "malformed"} {
		if strings.Contains(low, w) {
			return head
		}
	}
	return s
}

// cutEcho drops what a complaint about the request repeats of it.
func cutEcho(a *answer, text string, intros []pattern) string {
	for _, p := range intros {
		if !a.grams.may(p.gram) {
			continue
		}
		if end := p.find(text); end > 0 && end < len(text) {
			text = text[:end]
		}
	}
	// A quote that never closes was cut short: what follows it is a quotation as well.
	if i := strings.IndexAny(text, "\"`"); i > 0 {
		text = text[:i]
	}
	return text
}

// pattern is a compiled Text condition: fragments that must follow one another within one
// sentence.
type pattern struct {
	frags   []string
	first   bool   // "^": only at the beginning of a message
	wordEnd bool   // "$"
	gram    uint16 // of the first fragment, for the filter
}

func patterns(texts ...string) []pattern {
	ps := make([]pattern, len(texts))
	for i, t := range texts {
		ps[i] = newPattern(t)
	}
	return ps
}

func newPattern(s string) pattern {
	s = strings.ToLower(strings.TrimSpace(s))
	var p pattern
	s, p.first = strings.CutPrefix(s, "^")
	if p.wordEnd = strings.HasSuffix(s, "$"); p.wordEnd {
		s = s[:len(s)-1]
	}
	for f := range strings.SplitSeq(s, "*") {
		if f = strings.Join(strings.Fields(f), " "); f != "" {
			p.frags = append(p.frags, f)
		}
	}
	p.gram = noGram
	if len(p.frags) > 0 {
		p.gram = gramOf(p.frags[0])
	}
	return p
}

// find returns where the pattern's match ends in text that plainWords made, 0 where it does not match.
func (p pattern) find(text string) int {
	if len(p.frags) == 0 {
		return 0
	}
	for from := 0; from < len(text); {
		i := indexWord(text[from:], p.frags[0])
		if i < 0 {
			return 0
		}
		i += from
		if !p.first || i == 0 || text[i-1] == '\n' {
			if end, ok := p.tail(text, i+len(p.frags[0])); ok {
				return end
			}
		}
		from = i + len(p.frags[0])
	}
	return 0
}

func (p pattern) tail(text string, at int) (end int, ok bool) {
	for _, f := range p.frags[1:] {
		window := text[at:min(len(text), at+maxGap+len(f))]
		if i := sentenceEnd(window); i >= 0 && f[0] != '.' {
			window = window[:i+1]
		}
		var i int
		if isWord(f[0]) {
			i = indexWord(window, f)
		} else {
			i = strings.Index(window, f)
		}
		if i < 0 {
			return 0, false
		}
		at += i + len(f)
	}
	if p.wordEnd && at < len(text) && (isWord(text[at]) || text[at] == '.' && at+1 < len(text) && isWord(text[at+1])) {
		return 0, false
	}
	return at, true
}

// indexWord is strings.Index, but a match must not begin inside an ASCII word.
func indexWord(s, f string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], f)
		if i < 0 {
			return -1
		}
		i += from
		if i == 0 || !isWord(f[0]) || !isWord(s[i-1]) {
			return i
		}
		from = i + 1
	}
}

func sentenceEnd(s string) int {
	for from := 0; ; {
		i := strings.IndexAny(s[from:], ".!?\n")
		if i < 0 {
			return -1
		}
		i += from
		if s[i] == '\n' || i+1 < len(s) && s[i+1] == ' ' {
			return i
		}
		from = i + 1
	}
}
