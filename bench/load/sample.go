package load

import (
	"math"
	"slices"
	"time"
)

// Sample is what one request's client saw. Times are counted from when the request was due.
type Sample struct {
	// Due is when the request was due, counted from the start of the run; Late is how much later
	// the generator sent it.
	Due, Late time.Duration
	// First is the time to the first content, Total to the end of the answer.
	First, Total time.Duration
	// Gap is the longest time between two pieces of a stream's content, Pieces how many came.
	Gap    time.Duration
	Pieces int
	// Status is the HTTP status, 0 when no answer came. Err says what was wrong with an answer
	// that is not good: no 2xx, cut short, an error in the stream.
	Status int
	Err    string
	// Provider and Attempts are what the gateway says of itself in its headers.
	Provider, Attempts string
}

// Good reports whether the client got a whole answer.
func (s *Sample) Good() bool { return s.Err == "" }

// Run is what a run measured.
type Run struct {
	// Took is the time from the start to when the last request was due.
	Took    time.Duration
	Samples []Sample
}

// Errors counts the samples that are no good answers.
func (r *Run) Errors() int {
	n := 0
	for i := range r.Samples {
		if !r.Samples[i].Good() {
			n++
		}
	}
	return n
}

// FirstError returns one of the errors, empty when there is none.
func (r *Run) FirstError() string {
	for i := range r.Samples {
		if !r.Samples[i].Good() {
			return r.Samples[i].Err
		}
	}
	return ""
}

// Column returns a measure of the good answers, sorted.
func (r *Run) Column(of func(*Sample) time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(r.Samples))
	for i := range r.Samples {
		if r.Samples[i].Good() {
			out = append(out, of(&r.Samples[i]))
		}
	}
	slices.Sort(out)
	return out
}

// First is the time to the first content, for Column like the next ones.
func First(s *Sample) time.Duration { return s.First }

// Total is the time to the end of the answer.
func Total(s *Sample) time.Duration { return s.Total }

// Gap is the longest time between two pieces of content.
func Gap(s *Sample) time.Duration { return s.Gap }

// Late is how late the generator was.
func Late(s *Sample) time.Duration { return s.Late }

// Quantile returns the value at q (0 to 1) of sorted values by the nearest rank, 0 when there are none.
func Quantile[T ~int64 | ~float64](sorted []T, q float64) T {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Median returns the middle of values in any order, the mean of the middle two of an even number.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
