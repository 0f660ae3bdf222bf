package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// decode reads the one document of the file. Errors say in which line and column.
func (f *File) decode() error {
	file, err := parser.ParseBytes(f.src, 0)
	if err != nil {
		// Without the line: where the syntax is wrong, it may be one of the configuration's.
		placed, _, _ := strings.Cut(f.placed(err).Error(), "\n")
		return errors.New(placed)
	}
	bodies := 0
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if bodies++; bodies > 1 {
			return f.at(begin(doc.Body), "a second document begins here; a schedule is one: remove the --- line")
		}
	}
	if bodies == 0 {
		return fmt.Errorf("%s: there is nothing in it; a schedule needs config, length and traffic", f.path)
	}
	return f.placed(yaml.NewDecoder(bytes.NewReader(f.src), yaml.Strict()).Decode(f))
}

// placed puts an error of the YAML parser into this package's form.
func (f *File) placed(err error) error {
	var at yaml.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &at):
		return f.at(at.GetToken(), inWords(at))
	}
	return fmt.Errorf("%s: %w", f.path, err)
}

// inWords says what is wrong with a value of the wrong type without naming types of Go.
func inWords(err yaml.Error) string {
	var mismatch *yaml.TypeError
	var outside *yaml.OverflowError
	var shape *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &mismatch) && mismatch.Token != nil:
		return fmt.Sprintf("%q is not %s", mismatch.Token.Value, kindOf(mismatch.DstType))
	case errors.As(err, &outside):
		return fmt.Sprintf("%q is not %s", outside.SrcNum, kindOf(outside.DstType))
	case errors.As(err, &shape) && shape.Expected == ast.MappingType:
		return "this is not what belongs here: keys with values, as in length: 1h"
	case errors.As(err, &shape) && shape.Expected == ast.SequenceType:
		return "this is not what belongs here: a list, each of its entries after a dash"
	}
	return err.GetMessage()
}

// kindOf is what a value should have been.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Uint64:
		return "a whole number from 0 on"
	case reflect.Float64:
		return "a number"
	}
	return "what belongs here"
}

// errorf is an error about what a path leads to, at its place where it is in the file.
func (f *File) errorf(path, format string, args ...any) error {
	text := strings.NewReplacer("$.", "", "'", "").Replace(path) + ": " + fmt.Sprintf(format, args...)
	for ; path != "$"; path = path[:strings.LastIndexByte(path, '.')] { // what is missing is shown where it belongs
		if p, err := yaml.PathString(path); err == nil {
			if n, err := p.ReadNode(bytes.NewReader(f.src)); err == nil {
				return f.at(begin(n), text)
			}
		}
	}
	return fmt.Errorf("%s: %s", f.path, text)
}

// at is an error at a token, of which the line is shown. No other line is: the configuration may stand
// beside it, with keys.
func (f *File) at(t *token.Token, text string) error {
	lines := bytes.Split(f.src, []byte("\n"))
	if t == nil || t.Position == nil || t.Position.Line < 1 || t.Position.Line > len(lines) {
		return fmt.Errorf("%s: %s", f.path, text)
	}
	line, column := t.Position.Line, max(t.Position.Column, 1)
	number := fmt.Sprintf("%3d", line)
	return fmt.Errorf("%s:%d:%d: %s\n%s | %s\n%*s | %*s", f.path, line, column, text,
		number, bytes.TrimRight(lines[line-1], " \t\r"), len(number), "", column, "^")
}

// begin is the token that a node begins with. That of a mapping is the colon of its first pair.
func begin(n ast.Node) *token.Token {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken()
	}
	return n.GetToken()
}

// mistake is what a value's own reader finds wrong with it.
func mistake(n ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: begin(n)}
}

// inPlace returns the configuration that stands in the file with its lines and columns where they are
// there, so that messages about it lead to them.
func (f *File) inPlace() []byte {
	p, err := yaml.PathString("$.config")
	if err != nil {
		return []byte(f.Config)
	}
	n, err := p.ReadNode(bytes.NewReader(f.src))
	block, ok := n.(*ast.LiteralNode)
	if err != nil || !ok || !strings.HasPrefix(block.Start.Value, "|") {
		return []byte(f.Config)
	}
	first := block.Start.Position.Line // the line after it, counted from 0
	lines := strings.SplitAfter(string(f.src), "\n")
	last, indent := first, -1
	for ; last < len(lines); last++ {
		text := strings.TrimLeft(lines[last], " ")
		if strings.TrimSpace(text) == "" {
			continue
		}
		if here := len(lines[last]) - len(text); indent < 0 {
			indent = here
		} else if here < indent {
			break
		}
	}
	return []byte(strings.Repeat("\n", first) + strings.Join(lines[first:last], ""))
}
