package sqlite

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"omniroute/resilience"
	"omniroute/store/storetest"
)

func TestSplitRow(t *testing.T) {
	t.Parallel()
	join := func(words ...string) string { return strings.Join(words, separator) }
	good := []string{"1", "2", "3", "4", "5", "6", "p", "c", "m", "cooling", "auth", "{}"}
	with := func(i int, s string) string {
		words := append([]string(nil), good...)
		words[i] = s
		return join(words...)
	}
	for _, c := range []struct {
		name, text string
		err        error
	}{
		{"good", join(good...), nil},
		{"empty names", join("0", "0", "0", "0", "0", "0", "", "", "", "", "", ""), nil},
		{"the largest number", with(2, "9223372036854775807"), nil},
		{"the smallest number", with(2, "-9223372036854775808"), nil},
		{"too large a number", with(2, "9223372036854775808"), errUnreadable},
		{"too small a number", with(2, "-9223372036854775809"), errUnreadable},
		{"a long number", with(2, "00000000000000000001"), errUnreadable},
		{"no number", with(5, ""), errUnreadable},
		{"a sign alone", with(5, "-"), errUnreadable},
		{"a fraction", with(5, "1.5"), errUnreadable},
		{"a column too few", join(good[1:]...), errUnreadable},
		{"nothing", "", errUnreadable},
		{"a separator in a name", with(6, "a"+separator+"b"), errAmbiguous},
	} {
		if _, err := splitRow(c.text); err != c.err {
			t.Errorf("%s: error %v, want %v", c.name, err, c.err)
		}
	}
}

// FuzzRow: whatever lies in a row, reading it neither panics nor yields a record that the
// engine could not have written.
func FuzzRow(f *testing.F) {
	f.Add("1\x1f2\x1f3\x1f4\x1f5\x1f6\x1fp\x1fc\x1fm\x1fcooling\x1fauth\x1f{}")
	f.Add("-1\x1f2\x1f3\x1f4\x1f5\x1f6\x1fp\x1fc\x1fm\x1fcooling\x1fauth\x1f{}")
	f.Add(strings.Repeat("9\x1f", 11))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := splitRow(text)
		if err != nil {
			return
		}
		rec, reason := r.record(&interner{})
		if reason != "" {
			return
		}
		if min(int64(rec.Level), int64(rec.Failures), rec.SinceMs, rec.UntilMs, rec.UpdatedMs, rec.LockoutMs) < 0 {
			t.Errorf("a negative number passed: %+v", rec)
		}
		if _, err := resilience.ParseKind(rec.Kind.String()); err != nil {
			t.Error(err)
		}
		back := strings.Join([]string{rec.Key.Provider, rec.Key.Connection, rec.Key.Model, rec.State, rec.Kind.String(), rec.Detail}, separator)
		if !strings.HasSuffix(text, separator+back) {
			t.Errorf("%q was read as %+v", text, rec)
		}
	})
}

// Both scans must read the same, or a store would depend on whether some name has a separator.
func TestScansAgree(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	rapid.Check(t, func(rt *rapid.T) {
		rec := storetest.Records().Draw(rt, "record")
		mustApply(t, s, rec)
		i, _ := tableOf(rec.Layer)
		joined, plain := &loading{ctx: t.Context(), conn: s.conn}, &loading{ctx: t.Context(), conn: s.conn}
		err := joined.scan(tables[i], tables[i].joinedScan(), readJoined)
		if err := plain.scan(tables[i], tables[i].plainScan(), plainRow); err != nil {
			rt.Fatal(err)
		}
		got := plain.all()
		if len(got) != 1 || got[0] != rec {
			rt.Fatalf("the plain scan read %+v, want %+v", got, rec)
		}
		if err == nil && joined.all()[0] != rec {
			rt.Fatalf("the joined scan read %+v, want %+v", joined.all(), rec)
		}
		if err != nil && (err != errAmbiguous || len(joined.all()) != 0) {
			rt.Fatalf("the joined scan failed with %v and left %v", err, joined.all())
		}
		if err := s.Apply(t.Context(), []resilience.Change{{Record: rec, Delete: true}}); err != nil {
			rt.Fatal(err)
		}
	})
}
