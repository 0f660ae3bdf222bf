package simulate

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// The differences are of seed and same seed: 1, 2 and 0, with a deviation of 1, so that with 95% confidence
// their mean lies within 4.3027/√3 of 1.
func TestPaired(t *testing.T) {
	t.Parallel()
	r := Row{Values: [2][]float64{{10, 200, 3000}, {11, 202, 3000}}, Less: true}
	r.sum()
	if half := 4.3027 / math.Sqrt(3); r.Difference != 1 || r.Low == nil || !near4(*r.Low, 1-half) || !near4(*r.High, 1+half) {
		t.Errorf("the difference is %v, between %v and %v", r.Difference, r.Low, r.High)
	}
	if r.Better != 0 || r.Worse != 2 || r.verdict() != "not clear: better in 0, worse in 2" {
		t.Errorf("%s", r.verdict())
	}
	for want, b := range map[string][]float64{"the same": {10, 200, 3000}, "worse": {12, 202, 3002}, "better": {9, 199.1, 2999}} {
		r := Row{Values: [2][]float64{{10, 200, 3000}, b}, Less: true}
		if r.sum(); r.verdict() != want {
			t.Errorf("%v is %s, want %s", b, r.verdict(), want)
		}
	}
	if r.Mean != [2]float64{1070, 1071} {
		t.Errorf("the means are %v", r.Mean)
	}
	one := Row{Values: [2][]float64{{1}, {2}}}
	if one.sum(); one.Low != nil || !strings.HasPrefix(one.verdict(), "not clear") {
		t.Errorf("of one seed: %+v, %s", one, one.verdict())
	}
}

// What is lower since less was done is not called better.
func TestLessWorkIsNoMerit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answered, cost [2]float64
		want           string
	}{
		{[2]float64{100, 75}, [2]float64{40, 30}, "lower, for fewer answers"},
		{[2]float64{75, 100}, [2]float64{30, 40}, "higher, for more answers"},
		{[2]float64{100, 75}, [2]float64{30, 40}, "worse"},
		{[2]float64{75, 100}, [2]float64{40, 30}, "better"},
		{[2]float64{75, 75}, [2]float64{40, 30}, "better"},
	} {
		all := &Comparison{Rows: []Row{twice(c.answered, false), twice(c.cost, true)}}
		if got := all.verdict(&all.Rows[1]); got != c.want {
			t.Errorf("answered %v, cost %v: %s, want %s", c.answered, c.cost, got, c.want)
		}
	}
}

// twice is a row of two seeds with the same values.
func twice(v [2]float64, less bool) Row {
	r := Row{Less: less, Values: [2][]float64{{v[0], v[0]}, {v[1], v[1]}}}
	r.sum()
	return r
}

// Quantiles as tables have them.
func TestStudent(t *testing.T) {
	t.Parallel()
	for freedom, want := range map[int]float64{1: 12.7062, 4: 2.7764, 10: 2.2281, 11: 2.2010, 15: 2.1314, 20: 2.0860, 30: 2.0423, 60: 2.0003, 999: 1.9623} {
		if got := student(freedom); math.Abs(got-want) > 2e-4 {
			t.Errorf("of %d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

// A configuration beside itself makes no difference at all.
func TestCompareWithItself(t *testing.T) {
	t.Parallel()
	f, err := Parse("test.yaml", []byte("config: |"+two+outage))
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.Compare("testdata/fallback.yaml", "testdata/fallback.yaml", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Rows {
		if r.Difference != 0 || *r.Low != 0 || *r.High != 0 || r.verdict() != "the same" {
			t.Errorf("%s: %+v", r.Name, r)
		}
	}
	var b bytes.Buffer
	if err := c.WriteText(&b); err != nil || strings.Count(b.String(), "the same") != len(c.Rows) {
		t.Errorf("%v\n%s", err, &b)
	}
}
