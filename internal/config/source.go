package config

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// source is a file's text, and what of it must not be shown.
type source struct {
	name  string
	lines []string

	masks   map[int][]span  // by line: what is not shown
	secrets map[string]bool // texts that must not appear in a message
	// scrubber replaces them. It is made when it is needed, after the last one was added.
	scrubber *strings.Replacer
	// opaque says that the text was not understood, so that no word of it may be shown but known ones.
	opaque bool
}

type span struct{ from, to int } // columns from 1, to exclusive; 0 means the line's end

// Bounds of a file. A configuration of a thousand connections has 100 KB.
const (
	maxSource  = 1 << 20 // bytes
	maxNesting = 100
)

// readSource checks what does not need the syntax and returns the text ready to be parsed.
func (p *problems) readSource(name string, data []byte) (string, bool) {
	p.src = &source{name: name, opaque: true}
	if len(data) > maxSource {
		p.errorAt(pos{}, "", "the file is larger than 1 MiB; this is not a configuration")
		return "", false
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		p.errorAt(pos{}, "", "the file is UTF-16; save it as UTF-8")
		return "", false
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	p.src.lines = strings.Split(text, "\n")
	good := true
	for i, line := range p.src.lines {
		for column, r := range []rune(line) {
			if r == utf8.RuneError && !utf8.ValidString(line) || r < ' ' && r != '\t' || r == 0x7f {
				p.errorAt(pos{i + 1, column + 1}, "", "there is a byte here that is no text; save the file as UTF-8 and remove control characters")
				good = false
				break
			}
		}
		if !good {
			break
		}
	}
	if at, ok := tooDeep(p.src.lines); ok {
		p.errorAt(at, "", "values are nested more than %d deep here; this is not a configuration", maxNesting)
		good = false
	}
	return text, good
}

// tooDeep finds nesting that no configuration needs, before a recursive parser meets it. Brackets in
// quoted text count too: a hundred open ones are not text either.
func tooDeep(lines []string) (pos, bool) {
	depth := 0
	for i, line := range lines {
		dashes := 0
		leading := true
		for column, r := range []rune(line) {
			switch r {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			case '-', '?', ':':
				if leading {
					dashes++
				}
			}
			leading = leading && strings.ContainsRune(" \t-?:&*!", r)
			if depth > maxNesting || dashes > maxNesting {
				return pos{i + 1, column + 1}, true
			}
		}
	}
	return pos{}, false
}

// parseYAML returns the file's one document, nil with no problem recorded when it is empty.
func (p *problems) parseYAML(text string) (body ast.Node) {
	defer func() {
		// A parser of a foreign format that meets a text it was not made for must not end the
		// process: a file change at run time would take the gateway down.
		if r := recover(); r != nil {
			body = nil
			p.errorAt(pos{1, 1}, "", "the file is no YAML that can be read; look for unusual characters and unclosed quotes")
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at := pos{1, 1}
		message := "this is no valid YAML"
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			message = syntax.GetMessage()
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				at = pos{t.Position.Line, t.Position.Column}
			}
		}
		at.line = min(max(at.line, 1), len(p.src.lines))
		p.errorAt(at, "", "%s", syntaxMessage(message))
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if len(bodies) == 1 {
			at := pos{1, 1}
			if t := doc.Start; t != nil && t.Position != nil {
				at = pos{t.Position.Line, t.Position.Column}
			} else if t := doc.Body.GetToken(); t != nil && t.Position != nil {
				at = pos{t.Position.Line, t.Position.Column}
			}
			p.errorAt(at, "", "a second document begins here; a configuration is one document: remove the --- line")
			return nil
		}
		bodies = append(bodies, doc.Body)
	}
	if len(bodies) == 0 {
		return nil
	}
	return bodies[0]
}

// position makes a Position with a line that may be shown.
func (s *source) position(at pos) Position {
	p := Position{File: s.name, Line: at.line, Column: at.column, caret: at.column}
	if at.line < 1 || at.line > len(s.lines) {
		p.Line, p.Column = 0, 0
		return p
	}
	p.Column = max(p.Column, 1)
	p.line, p.caret = s.masked(at.line, p.Column)
	return p
}

// masked returns a line with *** for what must not be shown, and where the column is in it.
func (s *source) masked(number, column int) (string, int) {
	line := []rune(withoutComment(s.lines[number-1]))
	column = min(column, len(line)+1)
	spans := append(slices.Clone(s.masks[number]), tokenSpans(string(line))...)
	if s.opaque {
		spans = append(spans, unknownWords(line)...)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var out []rune
	caret, at := column, 1
	for _, m := range spans {
		if m.to == 0 || m.to > len(line)+1 {
			m.to = len(line) + 1
		}
		if m.from = max(m.from, at); m.from >= m.to {
			continue
		}
		out = append(out, line[at-1:m.from-1]...)
		if column >= m.from && column < m.to {
			caret = len(out) + 1
		}
		out = append(out, []rune("***")...)
		if column >= m.to {
			caret = len(out) + 1 + column - m.to
		}
		at = m.to
	}
	out = append(out, line[at-1:]...)
	text := strings.TrimRight(s.scrub(string(out)), " \t")
	return window(text, caret)
}

// withoutComment cuts a line before its comment, which could hold anything. A # within quotes is cut
// at too: telling the two apart is for a parser, and this must be right where the text is wrong.
func withoutComment(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || strings.IndexByte(" \t\"'])},", line[i-1]) >= 0) {
			return strings.TrimRight(line[:i], " \t")
		}
	}
	return line
}

// window cuts a long line so that the caret stays in sight.
func window(line string, caret int) (string, int) {
	const width = 160
	runes := []rune(line)
	if len(runes) <= width {
		return line, caret
	}
	from := max(0, min(caret-width/2, len(runes)-width))
	cut := string(runes[from:min(from+width, len(runes))])
	if from > 0 {
		cut, caret = "…"+cut, caret-from+1
	}
	if from+width < len(runes) {
		cut += "…"
	}
	return cut, caret
}

// scrub replaces every known secret in a text, and what looks like one.
func (s *source) scrub(text string) string {
	if s.scrubber == nil {
		// Of two secrets that begin alike the longer one is replaced: the first pair that fits counts.
		secrets := slices.SortedFunc(maps.Keys(s.secrets), func(a, b string) int {
			return cmp.Or(len(b)-len(a), strings.Compare(a, b))
		})
		var pairs []string
		for _, secret := range secrets {
			pairs = append(pairs, secret, "***")
		}
		s.scrubber = strings.NewReplacer(pairs...)
	}
	return withoutTokens(s.scrubber.Replace(text))
}

// hide makes sure that a value appears in no message. Very short ones, and words of the
// format, would hit innocent text and are masked by their place only.
func (s *source) hide(value string) {
	if value = strings.TrimSpace(value); len(value) < 6 || knownKeys()[value] {
		return
	}
	if s.secrets == nil {
		s.secrets = map[string]bool{}
	}
	s.secrets[value], s.scrubber = true, nil
}

// unknownWords returns the words of a line that was not understood which are neither a key nor
// anything that everybody may know: one of them could be a secret.
func unknownWords(line []rune) []span {
	var spans []span
	separator := func(r rune) bool { return strings.ContainsRune(" \t,[]{}\"'", r) }
	for i := 0; i < len(line); {
		if separator(line[i]) {
			i++
			continue
		}
		j := i
		for j < len(line) && !separator(line[j]) {
			j++
		}
		word := string(line[i:j])
		key, isKey := strings.CutSuffix(word, ":")
		if name := isKey && badName(key) == "" && !likeSecret(key); !name && !commonWord(key) {
			spans = append(spans, span{i + 1, j + 1})
		}
		i = j
	}
	return spans
}

// commonWord reports whether a word cannot be a secret.
func commonWord(word string) bool {
	if len(word) <= 2 || isVariable(word) || knownKeys()[word] {
		return true
	}
	return len(word) <= 6 && strings.Trim(word, "0123456789.%hmsu") == ""
}

// syntaxMessage says in the words of this package what the YAML parser found.
func syntaxMessage(message string) string {
	for _, m := range syntaxMessages {
		if strings.Contains(message, m[0]) {
			return m[1]
		}
	}
	return "this is no valid YAML; check indentation, colons and quotes here and in the line above"
}

var syntaxMessages = [][2]string{
	{"tab character", "a tab is used for indentation; use spaces"},
	{"found character '\t'", "a tab is used for indentation; use spaces"},
	{"double-quoted", "a double quote is not closed, or what follows a \\ is no escape; close it, or use single quotes"},
	{"single-quoted", "a single quote is not closed; close it"},
	{"quoted", "a quote is not closed; close it"},
	{"'}' must be specified", "a { is not closed, or a comma is missing; write {key: value, key: value}"},
	{"end token '}'", "a { is not closed; write }"},
	{"']' must be specified", "a [ is not closed, or a comma is missing; write [a, b]"},
	{"end token ']'", "a [ is not closed; write ]"},
	{"corresponding to", "a bracket is closed that was not opened; remove it, or put the text in quotes"},
	{"map key-value is pre-defined", "a value stands where a key is expected; check the indentation, and put text with \": \" in quotes"},
	{"non-map value", "this line has no key; write key: value"},
	{"unexpected key name", "this line has no colon or a wrong indentation; write key: value"},
	{"mapping value is not allowed", "a second \"key:\" stands in one line; put it on its own line, or the text in quotes"},
	{"sequence entries", "a list stands where none can be; put the - on its own line, indented below its key"},
	{"alias", "an alias needs a name; write *name"},
	{"anchor", "an anchor needs a name and a value; write &name value"},
	{"directive", "a line that begins with % has no meaning here; remove it"},
}
