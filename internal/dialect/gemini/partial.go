package gemini

import (
	"strconv"
	"strings"

	"omniroute/internal/dialect/neutral"
)

// partialCall puts arguments together from their pieces.
type partialCall struct {
	root any // map[string]any, []any, string, json.RawMessage or bool
}

// maxIndex bounds the lists that a path may make.
const maxIndex = 10000

// add puts a piece in its place. Texts grow.
func (p *partialCall) add(a *partialArg) {
	var value any
	switch {
	case a.StringValue != nil:
		value = *a.StringValue
	case len(a.NumberValue) > 0:
		value = a.NumberValue
	case a.BoolValue != nil:
		value = *a.BoolValue
	}
	if steps, ok := pathSteps(a.JSONPath); ok {
		p.root = put(p.root, steps, value)
	}
}

func (p *partialCall) json() string {
	if p.root == nil {
		return "{}"
	}
	return string(neutral.Encode(p.root))
}

// pathSteps splits a path like $.a.b[0]['c'] into names and indexes.
func pathSteps(path string) ([]any, bool) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, false
	}
	var steps []any
	for rest != "" {
		switch rest[0] {
		case '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			steps = append(steps, rest[1:1+end])
			rest = rest[1+end:]
		case '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, false
			}
			inner := rest[1:end]
			rest = rest[end+1:]
			if n, err := strconv.Atoi(inner); err == nil && n >= 0 && n < maxIndex {
				steps = append(steps, n)
			} else {
				steps = append(steps, strings.Trim(inner, `'"`))
			}
		default:
			return nil, false
		}
	}
	return steps, len(steps) > 0 && len(steps) < 100
}

func put(at any, steps []any, value any) any {
	if len(steps) == 0 {
		if more, ok := value.(string); ok {
			if text, ok := at.(string); ok {
				return text + more
			}
		}
		return value
	}
	switch step := steps[0].(type) {
	case int:
		list, _ := at.([]any)
		for len(list) <= step {
			list = append(list, nil)
		}
		list[step] = put(list[step], steps[1:], value)
		return list
	case string:
		members, _ := at.(map[string]any)
		if members == nil {
			members = map[string]any{}
		}
		members[step] = put(members[step], steps[1:], value)
		return members
	}
	return at
}
