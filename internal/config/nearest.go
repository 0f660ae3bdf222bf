package config

import (
	"cmp"
	"slices"
	"strings"
)

// nearest returns at most n of the names that may have been meant, the likeliest first.
func nearest(name string, names []string, n int) []string {
	const longest = 128 // characters; beyond it nobody has mistyped a name
	if len(name) > longest {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	lower := strings.ToLower(name)
	for _, other := range names {
		if other == name || len(other) > longest {
			continue
		}
		low := strings.ToLower(other)
		d := distance(lower, low)
		// A third of the characters wrong is a typing error; the beginning or a part of a long
		// name is a name that was cut short.
		limit := max(1, (max(len(lower), len(low))+1)/3)
		if len(lower) >= 3 && strings.Contains(low, lower) {
			d = min(d, limit)
		}
		if d <= limit {
			found = append(found, candidate{other, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, c := range found {
		if len(out) < n && !slices.Contains(out, c.name) {
			out = append(out, c.name)
		}
	}
	return out
}

// didYouMean returns "; did you mean …?" for the nearest name, or nothing.
func didYouMean(name string, names []string) string {
	if near := nearest(name, names, 1); len(near) > 0 {
		return "; did you mean " + quote(near[0]) + "?"
	}
	return ""
}

// distance is how many characters must be inserted, removed, replaced or swapped with their
// neighbour to make b of a (optimal string alignment), counted in bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
