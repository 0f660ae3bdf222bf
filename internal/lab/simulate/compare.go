package simulate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
)

// Comparison is two configurations on one schedule, over several seeds.
type Comparison struct {
	Title string   `json:"title"`
	Names []string `json:"configurations"`
	Seeds []uint64 `json:"seeds"`
	Rows  []Row    `json:"rows"`
}

// Row is one figure of both.
type Row struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Less says that less is better; where neither is, it does not count for the verdict.
	Less bool `json:"less_is_better"`
	// Values has a value for each seed, of the first and of the second configuration.
	Values [2][]float64 `json:"values"`
	// Mean has the mean of each.
	Mean [2]float64 `json:"mean"`
	// Difference is the mean, over the seeds, of what the second has more than the first on the same
	// seed. Low and High bound it with a confidence of 95% (Student's t); nil for a single seed.
	Difference float64  `json:"difference"`
	Low        *float64 `json:"difference_low"`
	High       *float64 `json:"difference_high"`
	// Better says in how many seeds the second is better than the first, Worse in how many it is
	// worse.
	Better int `json:"better"`
	Worse  int `json:"worse"`
}

var figures = []struct {
	name, unit string
	less       bool
	of         func(*Report) float64
}{
	{"answered", "%", false, func(r *Report) float64 { return 100 * r.Perfect }},
	{"failed or broken", "", true, func(r *Report) float64 { return float64(r.Failed + r.Broken) }},
	{"attempts a request", "", true, func(r *Report) float64 { return ratio(r.Attempts, r.Requests) }},
	{"wasted attempts", "", true, func(r *Report) float64 { return float64(r.Wasted) }},
	{"time added, p50", "ms", true, func(r *Report) float64 { return r.Added.P50 }},
	{"time added, p99", "ms", true, func(r *Report) float64 { return r.Added.P99 }},
	{"time added, worst", "ms", true, func(r *Report) float64 { return r.Added.Max }},
	{"first content, p50", "ms", true, func(r *Report) float64 { return r.First.P50 }},
	{"first content, p99", "ms", true, func(r *Report) float64 { return r.First.P99 }},
	{"cost", "$", true, func(r *Report) float64 { return r.Cost }},
	{"cost, wasted", "$", true, func(r *Report) float64 { return r.CostWasted }},
}

// Compare plays the schedule with two configurations, named from the working folder, with the file's
// seed and those after it.
func (f *File) Compare(a, b string, seeds int) (*Comparison, error) {
	c := &Comparison{Title: f.Title, Names: []string{a, b}}
	for _, x := range figures {
		c.Rows = append(c.Rows, Row{Name: x.name, Unit: x.unit, Less: x.less})
	}
	first := f.Seed
	defer func() { f.Seed = first }()
	for s := range seeds {
		f.Seed = first + uint64(s)
		c.Seeds = append(c.Seeds, f.Seed)
		for k, conf := range c.Names {
			file, err := filepath.Abs(conf) // not from the schedule's folder: they are named by the caller
			if err != nil {
				return nil, err
			}
			if err := f.Use(file); err != nil {
				return nil, err
			}
			if err := f.check(); err != nil {
				return nil, fmt.Errorf("%s: %w", conf, err)
			}
			r, err := f.Run()
			if err != nil {
				return nil, err
			}
			for i, x := range figures {
				c.Rows[i].Values[k] = append(c.Rows[i].Values[k], x.of(r))
			}
		}
	}
	for i := range c.Rows {
		c.Rows[i].sum()
	}
	c.Rows = slices.DeleteFunc(c.Rows, func(r Row) bool { return r.Unit == "$" && r.Mean == [2]float64{} }) // nobody knows a price
	return c, nil
}

func (r *Row) sum() {
	for k, values := range r.Values {
		for _, v := range values {
			r.Mean[k] += v / float64(len(values))
		}
	}
	r.pair()
	for i := range r.Values[0] {
		a, b := r.Values[0][i], r.Values[1][i]
		if r.Less {
			a, b = -a, -b
		}
		switch {
		case b > a:
			r.Better++
		case b < a:
			r.Worse++
		}
	}
}

// pair compares the two seed by seed, which leaves out what differs from seed to seed for both.
func (r *Row) pair() {
	n := float64(len(r.Values[0]))
	var more []float64
	for i, a := range r.Values[0] {
		more = append(more, r.Values[1][i]-a)
		r.Difference += more[i] / n
	}
	if n < 2 {
		return
	}
	squares := 0.0
	for _, d := range more {
		squares += (d - r.Difference) * (d - r.Difference)
	}
	half := student(len(more)-1) * math.Sqrt(squares/(n-1)/n)
	low, high := r.Difference-half, r.Difference+half
	r.Low, r.High = &low, &high
}

// student is the quantile of Student's t distribution that 97.5% are below, for so many degrees of freedom.
func student(freedom int) float64 {
	exact := []float64{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281}
	if freedom <= len(exact) {
		return exact[freedom-1]
	}
	// By its expansion around the normal distribution's, good to three places from here on.
	const z = 1.959964
	f := float64(freedom)
	return z + (z*z*z+z)/(4*f) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*f*f) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*f*f*f)
}

// verdict says what the second configuration is beside the first.
func (r *Row) verdict() string {
	switch {
	case r.Better+r.Worse == 0:
		return "the same"
	case r.Low == nil || *r.Low <= 0 && *r.High >= 0:
		return fmt.Sprintf("not clear: better in %d, worse in %d", r.Better, r.Worse)
	case (r.Difference < 0) == r.Less:
		return "better"
	}
	return "worse"
}

// verdict says it of a row among the others: whoever answers fewer requests has less work, which is no merit, and the
// other one no fault in having more.
func (c *Comparison) verdict(r *Row) string {
	answered, own := c.Rows[0].verdict(), r.verdict()
	switch {
	case answered == "worse" && own == "better":
		return "lower, for fewer answers"
	case answered == "better" && own == "worse":
		return "higher, for more answers"
	}
	return own
}

// WriteText writes the comparison for a terminal.
func (c *Comparison) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	seeds := "one seed"
	if n := len(c.Seeds); n > 1 {
		seeds = fmt.Sprintf("%d seeds", n)
	}
	fmt.Fprintf(out, "%s\n%s; A is %s, B is %s\n\n", c.Title, seeds, c.Names[0], c.Names[1])
	fmt.Fprintf(out, "%-20s %12s %12s %12s   %-26s %s\n", "MEAN", "A", "B", "B - A", "95% SURE: BETWEEN", "B IS")
	for _, r := range c.Rows {
		between := "-"
		if r.Low != nil {
			between = r.more(*r.Low) + " and " + r.more(*r.High)
		}
		fmt.Fprintf(out, "%-20s %12s %12s %12s   %-26s %s\n", r.Name, r.show(r.Mean[0]), r.show(r.Mean[1]), r.more(r.Difference), between, c.verdict(&r))
	}
	if len(c.Seeds) == 1 {
		fmt.Fprint(out, "\nOne seed does not tell luck from a difference; add --seeds 5.\n")
	}
	return out.Flush()
}

// more writes a difference.
func (r *Row) more(v float64) string {
	if v == 0 {
		return "0"
	}
	sign, v := "+", v
	if v < 0 {
		sign, v = "-", -v
	}
	switch r.Unit {
	case "%":
		return sign + strconv.FormatFloat(v, 'f', 3, 64) + " pp"
	case "ms":
		return sign + precise(v)
	case "$":
		return sign + dollars(v)
	}
	return sign + count(v)
}

// count writes a number, a small one to its thousandths.
func count(v float64) string {
	switch {
	case v == float64(int64(v)):
		return thousands(int(v))
	case v >= 100:
		return thousands(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// precise writes milliseconds where small ones matter.
func precise(ms float64) string {
	if ms < 10 {
		return strconv.FormatFloat(ms, 'f', 2, 64) + "ms"
	}
	return inMS(ms)
}

func (r *Row) show(v float64) string {
	switch {
	case r.Unit == "%":
		return percent(v / 100)
	case r.Unit == "ms":
		return inMS(v)
	case r.Unit == "$":
		return dollars(v)
	}
	return count(v)
}
