package config

import (
	"fmt"
	"strings"
)

// expansion is a text with its variables replaced.
type expansion struct {
	text      string
	any       bool // there was a variable
	defaulted bool // the default of at least one was used
}

// expand replaces ${NAME} and ${NAME:-default} in text; $${ stands for ${ itself. The default is used
// where the variable is not set or empty, as in a shell. The error says what to write and never shows a value.
func expand(text string, env func(string) (string, bool)) (expansion, error) {
	var out strings.Builder
	var e expansion
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			out.WriteString(text)
			e.text = out.String()
			return e, nil
		}
		if i > 0 && text[i-1] == '$' {
			out.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		out.WriteString(text[:i])
		inner, rest, closed := strings.Cut(text[i+2:], "}")
		if !closed {
			return e, fmt.Errorf("a ${ is not closed; write ${NAME}, or $${ for the two characters themselves")
		}
		text = rest
		name, def, hasDefault := strings.Cut(inner, ":-")
		if !validVariable(name) {
			return e, fmt.Errorf("between ${ and } stands no variable's name; write ${NAME} or ${NAME:-default}, or $${ for the two characters themselves")
		}
		e.any = true
		value, set := env(name)
		if !set {
			value = ""
		}
		switch {
		case hasDefault && value == "":
			value, e.defaulted = def, true
		case !set:
			return e, fmt.Errorf("the variable %s is not set; set it, or write ${%s:-} if it may be missing", name, name)
		}
		out.WriteString(value)
	}
}

func validVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// isVariable reports whether text is nothing but one variable, so that it tells no value.
func isVariable(text string) bool {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), "${")
	inner, closed := strings.CutSuffix(inner, "}")
	return ok && closed && validVariable(strings.TrimSuffix(inner, ":-"))
}
