package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/resilience"
)

// Audits checks that a store keeps what operators did: whole, the newest first, and at most so many of them.
func Audits(t *testing.T, s resilience.Auditor, most int) {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	entry := func(i int) resilience.Audit {
		return resilience.Audit{At: resilience.Timestamp{Time: at.Add(time.Duration(i) * time.Second)}, Actor: "token", Peer: "192.0.2.1:4711", Action: "reset",
			Key: resilience.Key{Provider: "p", Connection: "c", Model: fmt.Sprint("m'\"\x00;--", i)}, Detail: strings.Repeat("é", i%7)}
	}
	want := func(limit int, first, last int) {
		t.Helper()
		got, err := s.Audits(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		var all []resilience.Audit
		for i := first; i >= last; i-- {
			all = append(all, entry(i))
		}
		if diff := cmp.Diff(all, got, cmp.Comparer(func(a, b resilience.Timestamp) bool { return a.Equal(b.Time) })); diff != "" {
			t.Errorf("(-want +got)\n%.2000s", diff)
		}
	}
	want(10, -1, 0)
	for i := range most + 5 {
		if err := s.Record(t.Context(), entry(i)); err != nil {
			t.Fatal(err)
		}
		if i == 4 {
			want(3, 4, 2)
			want(100, 4, 0)
		}
	}
	want(most*2, most+4, 5)
}
