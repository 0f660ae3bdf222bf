package simulate

import (
	"math"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Duration is a time.Duration in YAML: "90s", "1h30m".
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(n ast.Node) error {
	s := scalar(n)
	v, err := time.ParseDuration(s)
	if s != "0" && err != nil || v < 0 {
		return mistake(n, "%q is no duration; write it as 500ms, 90s or 1h30m", s)
	}
	*d = Duration(v)
	return nil
}

// Count is a whole number. The YAML library would cut the fraction off one that is none.
type Count int

// UnmarshalYAML reads a whole number.
func (c *Count) UnmarshalYAML(n ast.Node) error {
	v, err := strconv.ParseInt(scalar(n), 10, 32)
	if err != nil {
		return mistake(n, "%q is not a whole number, or too large for one", scalar(n))
	}
	*c = Count(v)
	return nil
}

// Spread is a quantity that differs from time to time: half of the draws are below Median, and two
// thirds between Median/e^Spread and Median*e^Spread. In the file it is a number or a duration
// alone, or a mapping of median and spread. Durations are in seconds.
type Spread struct{ Median, Sigma float64 }

// maxQuantity bounds a median, in seconds or in tokens.
const maxQuantity = 1e6

// UnmarshalYAML reads a spread.
func (s *Spread) UnmarshalYAML(n ast.Node) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return s.median(n)
	}
	for pairs := m.MapRange(); pairs.Next(); {
		switch key := pairs.Key().String(); key {
		case "median":
			if err := s.median(pairs.Value()); err != nil {
				return err
			}
		case "spread":
			v, err := strconv.ParseFloat(scalar(pairs.Value()), 64)
			if err != nil || !within(v, 0, 3) {
				return mistake(pairs.Value(), "%q is no spread; it must be a number from 0 to 3", scalar(pairs.Value()))
			}
			s.Sigma = v
		default:
			return mistake(pairs.Key(), "unknown field %q; there are median and spread", key)
		}
	}
	if s.Median == 0 {
		return mistake(n, "it has no median; write {median: 600ms, spread: 0.5}")
	}
	return nil
}

// median reads a number, or a duration in seconds.
func (s *Spread) median(n ast.Node) error {
	text := scalar(n)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		var d time.Duration
		if d, err = time.ParseDuration(text); err != nil {
			return mistake(n, "%q is neither a number nor a duration such as 500ms", text)
		}
		v = d.Seconds()
	}
	if v <= 0 || !within(v, 0, maxQuantity) {
		return mistake(n, "%s is not above 0 and at most %.0f", text, maxQuantity)
	}
	s.Median = v
	return nil
}

// scalar is the text of a value without parts, and of another as it is written.
func scalar(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return n.String()
}

// within reports whether a number is one and within its bounds.
func within(v, from, to float64) bool { return !math.IsNaN(v) && v >= from && v <= to }
