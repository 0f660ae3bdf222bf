package simulate

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"maps"
	"omniroute/internal/config"
	"slices"
	"strings"
	"time"
)

//go:embed report.gohtml
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"thousands": thousands, "percent": percent, "clock": clock, "short": short, "after": after, "ms": inMS, "dollars": dollars,
	"sixth": func(i int) template.CSS { return template.CSS(fmt.Sprintf("%.2f%%", float64(i)*100/6)) }, //nolint:gosec // a number
	"next":  func(n int) int { return n + 1 },
	"sub":   func(a, b int64) int64 { return a - b },
	"kinds": func(m map[string]int) string {
		var words []string
		for _, k := range slices.Sorted(maps.Keys(m)) {
			words = append(words, fmt.Sprintf("%s %s", thousands(m[k]), k))
		}
		return strings.Join(words, ", ")
	},
}).Parse(pageText))

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	return page.Execute(w, struct {
		*Report
		Length     string
		PerRequest string
		Unanswered int
		Priced     bool
		Charts     []chart
	}{r, config.DurationText(time.Duration(r.LengthMS) * time.Millisecond), fmt.Sprintf("%.3f", ratio(r.Attempts, r.Requests)), r.Failed + r.Broken, r.Unpriced < r.Attempts, r.charts()})
}

// Measures of a chart, in the units of its view box.
const (
	chartWidth  = 960
	chartHeight = 150
)

// chart is one drawing over time.
type chart struct {
	Title  string
	Top    string // what the upper edge stands for
	Bands  []band
	Edges  []float64 // where troubles begin and end, which is seen before the bars too
	Bars   []bar     // stacked
	Lines  []line
	Legend []legend
	Ticks  []string
}

type band struct {
	X, Width float64
	What     string
}

type bar struct {
	X, Y, Width, Height float64
	Class, Title        string
}

type line struct{ Class, Points string }

type legend struct{ Class, Name string }

// series is one figure for each interval.
type series struct {
	class, name string
	of          func(*Interval) float64
}

func (r *Report) charts() []chart {
	f := func(of func(*Interval) int) func(*Interval) float64 {
		return func(p *Interval) float64 { return float64(of(p)) }
	}
	charts := []chart{
		r.stack("What clients got", "requests",
			series{"good", "answered", f(func(p *Interval) int { return p.Answered })},
			series{"warn", "broke off", f(func(p *Interval) int { return p.Broken })},
			series{"bad", "failed", f(func(p *Interval) int { return p.Failed })}),
		r.stack("What upstreams were asked", "attempts",
			series{"good", "came to an answer", f(func(p *Interval) int { return p.Attempts - min(p.Wasted, p.Attempts) })},
			series{"bad", "wasted", f(func(p *Interval) int { return min(p.Wasted, p.Attempts) })}),
	}
	var by []series
	for i, name := range r.providers() {
		by = append(by, series{fmt.Sprintf("p%d", i%6), name, func(p *Interval) float64 { return float64(p.By[name]) }})
	}
	return append(charts,
		r.stack("Who answered", "requests", by...),
		r.plot("Slowest hundredth",
			series{"p0", "time added, p99", func(p *Interval) float64 { return p.AddedP99 }},
			series{"p1", "first content, p99", func(p *Interval) float64 { return p.FirstP99 }}))
}

func (r *Report) providers() []string {
	names := map[string]bool{}
	for i := range r.Timeline {
		for name := range r.Timeline[i].By {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (r *Report) x(at int64) float64 {
	return chartWidth * float64(at) / float64(max(r.LengthMS, 1))
}

// frame is what all charts have.
func (r *Report) frame(title, top string, all []series) chart {
	c := chart{Title: title, Top: top}
	for _, t := range r.Troubles {
		c.Bands = append(c.Bands, band{r.x(t.FromMS), max(r.x(t.ToMS)-r.x(t.FromMS), 1), t.What})
		for _, at := range []float64{r.x(t.FromMS), r.x(t.ToMS)} {
			if !slices.Contains(c.Edges, at) {
				c.Edges = append(c.Edges, at)
			}
		}
	}
	for _, s := range all {
		c.Legend = append(c.Legend, legend{s.class, s.name})
	}
	for i := range 7 {
		c.Ticks = append(c.Ticks, clock(r.LengthMS*int64(i)/6))
	}
	return c
}

func (r *Report) stack(title, unit string, all ...series) chart {
	top := 1.0
	for i := range r.Timeline {
		sum := 0.0
		for _, s := range all {
			sum += s.of(&r.Timeline[i])
		}
		top = max(top, sum)
	}
	c := r.frame(title, thousands(int(top))+" "+unit, all)
	for i := range r.Timeline {
		p := &r.Timeline[i]
		y, x := float64(chartHeight), r.x(p.FromMS)
		width := r.x(min(p.FromMS+r.IntervalMS, r.LengthMS)) - x
		for _, s := range all {
			v := s.of(p)
			if v == 0 {
				continue
			}
			height := chartHeight * v / top
			y -= height
			c.Bars = append(c.Bars, bar{x, y, max(width-1, 0.5), height, s.class, fmt.Sprintf("%s: %s %s", clock(p.FromMS), thousands(int(v)), s.name)})
		}
	}
	return c
}

func (r *Report) plot(title string, all ...series) chart {
	top := 1.0
	for i := range r.Timeline {
		for _, s := range all {
			top = max(top, s.of(&r.Timeline[i]))
		}
	}
	c := r.frame(title, inMS(top), all)
	for _, s := range all {
		var points strings.Builder
		for i := range r.Timeline {
			p := &r.Timeline[i]
			fmt.Fprintf(&points, "%.1f,%.1f ", r.x(p.FromMS+r.IntervalMS/2), chartHeight-chartHeight*s.of(p)/top)
		}
		c.Lines = append(c.Lines, line{s.class, points.String()})
	}
	return c
}
