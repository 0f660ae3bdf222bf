package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Position is a place in a configuration file, with its line as it may be shown: secrets are masked in it.
type Position struct {
	File string
	// Line and Column count from 1, Column in characters. 0 means the file as a whole.
	Line, Column int

	line  string // the masked source line
	caret int    // the column in it, from 1
}

// String returns FILE:LINE:COLUMN.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Source returns the source line and a caret below the place, each indented; empty for a whole file.
func (p Position) Source() string {
	if p.Line == 0 {
		return ""
	}
	number := fmt.Sprint(p.Line)
	// Tabs stay tabs, so that the caret stands where the terminal puts the character above it.
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string([]rune(p.line)[:min(p.caret-1, len([]rune(p.line)))]))
	return fmt.Sprintf("  %s | %s\n  %s | %s^\n", number, p.line, strings.Repeat(" ", len(number)), pad)
}

// Errorf makes an error about the place. The first line of the message says what is wrong and what to do; further
// lines are shown below the source line, for text that can be pasted.
func (p Position) Errorf(format string, args ...any) *Error {
	return &Error{Position: p, Message: fmt.Sprintf(format, args...)}
}

// Error is one thing that is wrong with a configuration.
type Error struct {
	Position
	// Path is the key's path, such as providers.acme.base_url. Empty where there is none.
	Path    string
	Message string
}

// Error returns the place, what is wrong and the source line.
func (e *Error) Error() string { return report(e.Position, "", e.Path, e.Message) }

// Errors is everything that is wrong with a configuration, in the order of the file. It is never empty.
type Errors []*Error

// maxReported bounds what one run prints; the rest is counted.
const maxReported = 200

// Error returns all of them, at most the first 200 in full.
func (es Errors) Error() string {
	var b strings.Builder
	for i, e := range es {
		if i == maxReported {
			fmt.Fprintf(&b, "and %d more, which are shown once some of these are repaired\n", len(es)-i)
			break
		}
		b.WriteString(e.Error())
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}

// Unwrap gives errors.Is and errors.As every error.
func (es Errors) Unwrap() []error {
	all := make([]error, len(es))
	for i, e := range es {
		all[i] = e
	}
	return all
}

// Warning is something that a person should know and that stops nothing.
type Warning struct {
	Position
	Path    string
	Message string
}

// String returns the warning as an error would be shown.
func (w Warning) String() string { return report(w.Position, "warning: ", w.Path, w.Message) }

func report(at Position, label, path, message string) string {
	first, rest, _ := strings.Cut(message, "\n")
	text := at.String() + ": " + label
	if path != "" {
		text += path + ": "
	}
	text += first
	if source := at.Source(); source != "" {
		text += "\n" + strings.TrimRight(source, "\n")
	}
	if rest != "" {
		text += "\n" + rest
	}
	return text
}

// problems collects what is found, so that one run reports it all.
type problems struct {
	src      *source
	errors   Errors
	warnings []Warning
	seen     map[string]bool // an anchor that is used often is reported once
}

func (p *problems) errorf(n *node, format string, args ...any) {
	n.bad = true
	p.errorAt(n.pos, n.path, format, args...)
}

func (p *problems) errorAt(at pos, path, format string, args ...any) {
	e := &Error{Position: Position{Line: at.line, Column: at.column}, Path: path, Message: fmt.Sprintf(format, args...)}
	key := fmt.Sprint(at, e.Message)
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	if !p.seen[key] {
		p.seen[key] = true
		p.errors = append(p.errors, e)
	}
}

func (p *problems) warnf(n *node, format string, args ...any) {
	at := Position{Line: n.pos.line, Column: n.pos.column}
	p.warnings = append(p.warnings, Warning{at, n.path, fmt.Sprintf(format, args...)})
}

// finish gives everything that was found its source line. It comes last, since only then it is
// known what must not be shown.
func (p *problems) finish() {
	for _, e := range p.errors {
		e.Position = p.src.position(pos{e.Line, e.Column})
		e.Path, e.Message = p.src.scrub(e.Path), p.src.scrub(e.Message)
	}
	for i := range p.warnings {
		w := &p.warnings[i]
		w.Position = p.src.position(pos{w.Line, w.Column})
		w.Path, w.Message = p.src.scrub(w.Path), p.src.scrub(w.Message)
	}
	slices.SortStableFunc(p.errors, func(a, b *Error) int { return inOrder(a.Position, b.Position) })
	slices.SortStableFunc(p.warnings, func(a, b Warning) int { return inOrder(a.Position, b.Position) })
}

func inOrder(a, b Position) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// err returns what was found in the order of the file, nil when nothing was.
func (p *problems) err() error {
	if len(p.errors) == 0 {
		return nil
	}
	p.finish()
	return p.errors
}
