package catalog

import "strings"

// Pattern matches model names, in any case: '*' stands for any run of characters, '#' for one digit,
// everything else for itself.
type Pattern string

// Match reports whether the whole name matches.
func (p Pattern) Match(name string) bool {
	pattern, name := strings.ToLower(string(p)), strings.ToLower(name)
	// The position after the last '*' and where it began to match: the usual backtracking of
	// globs, which needs no more than one '*' at a time.
	star, from, i, j := -1, 0, 0, 0
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, j
			i++
		case i < len(pattern) && (pattern[i] == name[j] || pattern[i] == '#' && '0' <= name[j] && name[j] <= '9'):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// weight is how many characters of a name the pattern pins down.
func (p Pattern) weight() int { return len(p) - strings.Count(string(p), "*") }
