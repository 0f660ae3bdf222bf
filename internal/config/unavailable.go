package config

import "slices"

// unavailable lists what the format has and this version lacks: keys by their path, * for any name, [] for any place
// in a list, and words of a key after =. A file that uses one is refused. What has been built is
// deleted from this list.
var unavailable = []string{}

// available reports whether a key, or a word of it, can be used in this version.
func available(path string) bool { return !slices.Contains(unavailable, path) }

// words returns those of a key's words that can be used in this version.
func availableWords(path string, words []string) []string {
	var left []string
	for _, w := range words {
		if available(path + "=" + w) {
			left = append(left, w)
		}
	}
	return left
}

// availableFields returns those of an object's fields that can be used in this version.
func availableFields(path string, s *spec) []field {
	var left []field
	for _, f := range s.fields {
		if available(below(path, f.key)) {
			left = append(left, f)
		}
	}
	return left
}

// below appends a key to a path in the notation of the list.
func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
