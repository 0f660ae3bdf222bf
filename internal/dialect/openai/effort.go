package openai

import (
	"strconv"
	"strings"
)

// efforts are the words for an effort, the least first.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// Effort returns the nearest effort that a model takes: OpenAI's refuse the others, and each generation
// knows other words. What services of other models have in common are low to high: they get no other
// word, and none where they are not to think, which most refuse to be told so.
func Effort(model, word string) string {
	least, most, without := effortsOf(model[strings.LastIndexByte(model, '/')+1:])
	at := rank(word)
	switch {
	case at < 0:
		return word
	case most == "" && word == "none":
		return ""
	case most == "":
		return efforts[min(max(at, rank("low")), rank("high"))]
	case at < rank(least):
		return least
	case at > rank(most):
		return most
	case word == without:
		return "low"
	}
	return word
}

func rank(word string) int {
	for i, w := range efforts {
		if w == word {
			return i
		}
	}
	return -1
}

// effortsOf returns the range of a model's efforts, and a word in it that the model does not know. An empty range
// means that nothing is known.
func effortsOf(base string) (least, most, without string) {
	if strings.HasPrefix(base, "gpt-oss") || Reasons(base) && !strings.HasPrefix(base, "gpt-") {
		return "low", "high", ""
	}
	version, ok := strings.CutPrefix(base, "gpt-5")
	if !ok || !Reasons(base) {
		return "", "", ""
	}
	codex := strings.Contains(version, "codex")
	minor := 0
	if digits, ok := strings.CutPrefix(version, "."); ok {
		digits, _, _ = strings.Cut(digits, "-")
		minor, _ = strconv.Atoi(digits)
	}
	least, most, without = "none", "xhigh", "minimal"
	switch {
	case minor == 0:
		least, most, without = "minimal", "high", ""
	case minor == 1:
		most = "high"
		if strings.Contains(version, "max") {
			most = "xhigh"
		}
	case minor > 2:
		most = "max"
	}
	if codex {
		least = "low"
	}
	return least, most, without
}
