package simulate

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
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
	// Median has the median of each.
	Median [2]float64 `json:"median"`
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
	return c, nil
}

func (r *Row) sum() {
	for k, v := range r.Values {
		sorted := slices.Sorted(slices.Values(v))
		r.Median[k] = sorted[len(sorted)/2]
	}
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

// WriteText writes the comparison for a terminal.
func (c *Comparison) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n%d seeds; A is %s, B is %s\n\n%-22s %14s %14s   %s\n", c.Title, len(c.Seeds), c.Names[0], c.Names[1], "MEDIAN", "A", "B", "B IS")
	for _, r := range c.Rows {
		verdict := "the same"
		switch {
		case r.Better > 0 || r.Worse > 0:
			var words []string
			if r.Better > 0 {
				words = append(words, fmt.Sprintf("better in %d", r.Better))
			}
			if r.Worse > 0 {
				words = append(words, fmt.Sprintf("worse in %d", r.Worse))
			}
			verdict = strings.Join(words, ", ")
		}
		fmt.Fprintf(out, "%-22s %14s %14s   %s\n", r.Name, r.show(r.Median[0]), r.show(r.Median[1]), verdict)
	}
	return out.Flush()
}

func (r *Row) show(v float64) string {
	switch {
	case r.Unit == "%":
		return percent(v / 100)
	case r.Unit == "ms":
		return inMS(v)
	case v == float64(int64(v)):
		return thousands(int(v))
	}
	return fmt.Sprintf("%.3f", v)
}
