package config

import "omniroute/internal/catalog"

// prefillWays returns the words of the key prefill.
func prefillWays() (words []string) {
	for _, w := range catalog.PrefillWays() {
		words = append(words, string(w))
	}
	return words
}

// prefillWay reads the key, empty when it is not set.
func prefillWay(n *node) catalog.PrefillWay {
	if !n.ok() {
		return ""
	}
	return catalog.PrefillWay(n.text)
}
