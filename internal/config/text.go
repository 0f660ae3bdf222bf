package config

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// quote puts a text in quotes for a message and cuts what is too long to be read.
func quote(text string) string {
	const longest = 60
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > longest {
		text = string([]rune(text)[:longest]) + "…"
	}
	return `"` + text + `"`
}

// oneOf joins words as a sentence does: "a", "a or b", "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func contains(words []string, word string) bool { return slices.Contains(words, word) }
