package telemetry

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// gapSeries adds up the Gaps of one target's streams. It is a histogram of ours because a stream has
// hundreds of pieces: their gaps are counted where nobody else counts, and come here once, at the end.
type gapSeries struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair // sorted
	target [3]string

	none  atomic.Uint64
	cells [gapCells]atomic.Uint64
	sum   atomic.Int64 // nanoseconds
}

func (s *gapSeries) add(g *Gaps) {
	s.none.Add(uint64(g.none))
	for _, c := range g.cells {
		s.cells[c.cell].Add(uint64(c.n))
	}
	s.sum.Add(int64(g.sum))
}

// Desc implements prometheus.Metric.
func (s *gapSeries) Desc() *prometheus.Desc { return s.desc }

// gapLines are the upper bounds, as powers of two of a second, for scrapers that read no native histograms.
var gapLines = []int{-10, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}

// Write implements prometheus.Metric.
func (s *gapSeries) Write(m *dto.Metric) error {
	m.Label = s.labels
	h := &dto.Histogram{
		Schema: new(int32), ZeroThreshold: new(gapFloor), ZeroCount: new(s.none.Load()),
		SampleSum: new(float64(s.sum.Load()) / 1e9),
	}
	*h.Schema = gapSchema
	total, before := h.GetZeroCount(), int64(0)
	line, next := 0, math.MinInt
	for i := range s.cells {
		for ; line < len(gapLines) && (gapLines[line]-gapLowest)*gapPer <= i; line++ {
			h.Bucket = append(h.Bucket, gapBucket(gapLines[line], total))
		}
		n := int64(s.cells[i].Load())
		if n == 0 {
			continue
		}
		total += uint64(n)
		key := gapLowest*gapPer + 1 + i // of the native histogram
		switch {
		case next == key:
			*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		case len(h.PositiveSpan) == 0:
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: new(int32(key)), Length: new(uint32(1))})
		default:
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: new(int32(key - next)), Length: new(uint32(1))})
		}
		h.PositiveDelta = append(h.PositiveDelta, n-before)
		before, next = n, key+1
	}
	for ; line < len(gapLines); line++ {
		h.Bucket = append(h.Bucket, gapBucket(gapLines[line], total))
	}
	h.SampleCount = &total
	if len(h.PositiveSpan) == 0 { // else it could not be told from a histogram that is not native
		h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32), Length: new(uint32)}}
	}
	m.Histogram = h
	return nil
}

func gapBucket(power int, total uint64) *dto.Bucket {
	return &dto.Bucket{UpperBound: new(math.Ldexp(1, power)), CumulativeCount: &total}
}

// gapVec holds the series of all targets.
type gapVec struct {
	desc *prometheus.Desc
	mu   sync.Mutex
	all  map[[3]string]*gapSeries
}

func newGapVec(name, help string) *gapVec {
	return &gapVec{desc: prometheus.NewDesc("omniroute_"+name, help, targetLabels, nil), all: map[[3]string]*gapSeries{}}
}

func (v *gapVec) with(provider, connection, model string) *gapSeries {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := [3]string{provider, connection, model}
	s := v.all[key]
	if s == nil {
		s = &gapSeries{desc: v.desc, target: key, labels: prometheus.MakeLabelPairs(v.desc, key[:])}
		v.all[key] = s
	}
	return s
}

// Describe implements prometheus.Collector.
func (v *gapVec) Describe(ch chan<- *prometheus.Desc) { ch <- v.desc }

// Collect implements prometheus.Collector.
func (v *gapVec) Collect(ch chan<- prometheus.Metric) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.all {
		ch <- s
	}
}

// DeletePartialMatch forgets the series that have all of these labels, as the vectors of the library do.
func (v *gapVec) DeletePartialMatch(gone prometheus.Labels) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key := range v.all {
		if !slices.ContainsFunc(targetLabels, func(label string) bool {
			want, ok := gone[label]
			return ok && want != key[slices.Index(targetLabels, label)]
		}) {
			delete(v.all, key)
			n++
		}
	}
	return n
}
