package admin

import (
	"cmp"
	"slices"
	"strings"
)

// suggest is the end of a sentence that says which name may have been meant.
func suggest(name string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	if len(name) <= 100 {
		name = strings.ToLower(name)
		best := slices.MinFunc(names, func(a, b string) int {
			return cmp.Compare(edits(name, strings.ToLower(a)), edits(name, strings.ToLower(b)))
		})
		if edits(name, strings.ToLower(best)) <= max(1, (max(len(name), len(best))+1)/3) {
			return "; did you mean " + best + "?"
		}
	}
	return "; there are " + shown(strings.Join(names, ", "))
}

// edits is how many bytes must be inserted, removed or replaced to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
