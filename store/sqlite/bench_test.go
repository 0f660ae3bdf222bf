package sqlite

import (
	"context"
	"testing"

	"omniroute/resilience"
	"omniroute/store/storetest"
)

// BenchmarkOpen is what a restart waits for, together with BenchmarkLoad: checks included.
func BenchmarkOpen(b *testing.B) {
	path := filled(b, 100_000)
	for b.Loop() {
		s, err := Open(context.Background(), path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	s := mustOpen(b, filled(b, 100_000))
	b.ReportAllocs()
	for b.Loop() {
		if records := mustLoad(b, s); len(records) != 100_000 {
			b.Fatalf("%d records", len(records))
		}
	}
}

func BenchmarkApply(b *testing.B) {
	all := storetest.Many(100_000)
	for _, size := range []int{1, 100, 10_000} {
		b.Run(map[int]string{1: "1", 100: "100", 10_000: "10000"}[size], func(b *testing.B) {
			s := mustOpen(b, newPath(b))
			batch := make([]resilience.Change, size)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				for j := range batch {
					batch[j].Record = all[i%len(all)]
					i++
				}
				if err := s.Apply(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/record")
		})
	}
}
