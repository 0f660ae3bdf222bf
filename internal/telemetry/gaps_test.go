package telemetry

import (
	"io"
	"math"
	"net/http/httptest"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"pgregory.net/rapid"
)

// TestGapCells: every time lies in the cell whose bounds a scraper computes from the schema.
func TestGapCells(t *testing.T) {
	t.Parallel()
	bound := func(cell int) float64 { // the cell's upper bound, as Prometheus has it
		return math.Exp2(float64(gapLowest*gapPer+1+cell) / gapPer)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-5, int64(time.Hour)).Draw(t, "nanoseconds"))
		if rapid.Bool().Draw(t, "short") {
			d /= 1 << rapid.IntRange(0, 30).Draw(t, "by")
		}
		s, cell := d.Seconds(), gapCell(d)
		const near = 1 + 1e-12 // bounds are rounded
		switch {
		case cell == -1:
			if s > gapFloor {
				t.Fatalf("%v counts as none", d)
			}
		case cell == gapCells-1: // it has no upper end
			if s*near < bound(cell-1) {
				t.Fatalf("%v is in the last cell", d)
			}
		case s > bound(cell)*near || s*near < bound(cell-1):
			t.Fatalf("%v is in cell %d, from %v to %v s", d, cell, bound(cell-1), bound(cell))
		}
	})
}

// TestGapsAreShown reads what a stream's gaps come to, as Prometheus does and as text.
func TestGapsAreShown(t *testing.T) {
	t.Parallel()
	_, m := start(t)
	s := answered()
	g := new(Gaps)
	for _, d := range []time.Duration{0, time.Microsecond, 20 * time.Millisecond, 20 * time.Millisecond, 21 * time.Millisecond, 500 * time.Millisecond, 2 * time.Hour} {
		g.Add(d)
	}
	s.Gaps = []*Gaps{g}
	m.Observe(s)
	m.Observe(s)

	const series = `{connection="k1",model="large",provider="acme"`
	text := scrape(t, m)
	for line, want := range map[string]float64{
		"_count" + series + "}": 14, "_bucket" + series + `,le="0.015625"}`: 4, "_bucket" + series + `,le="0.03125"}`: 10,
		"_bucket" + series + `,le="0.5"}`: 12, "_bucket" + series + `,le="128"}`: 12, "_bucket" + series + `,le="+Inf"}`: 14,
	} {
		if got, ok := text["omniroute_chunk_gap_seconds"+line]; !ok || got != want {
			t.Errorf("%s = %v, %v; want %v", line, got, ok, want)
		}
	}
	if got := text["omniroute_chunk_gap_seconds_sum"+series+"}"]; math.Abs(got-2*(7200.561001)) > 1e-6 {
		t.Errorf("the sum is %v", got)
	}
	h := nativeOf(t, m, "omniroute_chunk_gap_seconds")
	n, count := h.GetZeroCount(), int64(0)
	for _, delta := range h.GetPositiveDelta() {
		count += delta
		n += uint64(count)
	}
	cells := 0
	for _, span := range h.GetPositiveSpan() {
		cells += int(span.GetLength())
	}
	if n != 14 || cells != len(h.GetPositiveDelta()) || h.GetSchema() != gapSchema {
		t.Errorf("%d in %d cells for %d deltas of schema %d: %v", n, cells, len(h.GetPositiveDelta()), h.GetSchema(), h)
	}
}

func nativeOf(t *testing.T, m *Metrics, name string) *dto.Histogram {
	t.Helper()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	dec := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
	for {
		var f dto.MetricFamily
		if err := dec.Decode(&f); err == io.EOF { //nolint:errorlint // the decoder's own end
			t.Fatalf("there is no %s", name)
		} else if err != nil {
			t.Fatal(err)
		}
		if f.GetName() == name {
			return f.GetMetric()[0].GetHistogram()
		}
	}
}

func BenchmarkGapsAdd(b *testing.B) {
	g, d := new(Gaps), time.Millisecond
	for b.Loop() {
		g.Add(d)
		d = d*17/16 + 1
		if d > time.Minute {
			d = time.Millisecond
		}
	}
}
