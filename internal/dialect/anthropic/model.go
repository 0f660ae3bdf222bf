package anthropic

import (
	"strconv"
	"strings"
)

// abilities are what a model takes. Names that are not Anthropic's get the ones of the models
// that services with its API serve.
type abilities struct {
	sampling bool // temperature, top_p and top_k
	adaptive bool // thinking in an amount of its own choice, with an effort
	budget   bool // thinking with a number of tokens
	schema   bool // an output format, and strict tools
	prefill  bool // a conversation that ends with a turn of the assistant
	output   int64
}

// abilitiesOf returns what is known of a model by its name: claude-FAMILY-MAJOR[-MINOR][-DATE], or in the
// older order claude-MAJOR[-MINOR]-FAMILY.
func abilitiesOf(model string) abilities {
	generation, ok := generationOf(model)
	switch {
	case !ok:
		return abilities{sampling: true, budget: true, schema: true, prefill: true, output: 8192}
	case generation >= 407:
		return abilities{adaptive: true, schema: true, output: 64000}
	case generation >= 406:
		return abilities{sampling: true, adaptive: true, budget: true, schema: true, output: 64000}
	case generation >= 405:
		return abilities{sampling: true, budget: true, schema: true, prefill: true, output: 64000}
	case generation >= 400:
		return abilities{sampling: true, budget: true, schema: generation == 401, prefill: true, output: 32000}
	case generation >= 307:
		return abilities{sampling: true, budget: true, prefill: true, output: 8192}
	case generation >= 305:
		return abilities{sampling: true, prefill: true, output: 8192}
	}
	return abilities{sampling: true, prefill: true, output: 4096}
}

// generationOf returns 100 times the major version plus the minor one.
func generationOf(model string) (int, bool) {
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
	}
	i := strings.Index(model, "claude-")
	if i < 0 {
		return 0, false
	}
	major, minor := -1, 0
	for _, word := range strings.FieldsFunc(model[i+len("claude-"):], func(r rune) bool { return r == '-' || r == '.' || r == '@' || r == ':' }) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil && major >= 0:
			return 100*major + minor, true
		case err != nil:
		case major < 0:
			major = n
		case n < 100:
			return 100*major + n, true
		default: // a date
			return 100 * major, true
		}
	}
	return 100*major + minor, major >= 0
}
