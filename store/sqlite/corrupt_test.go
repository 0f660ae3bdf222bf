package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniroute/resilience"
	"omniroute/store/storetest"
)

// A file that is no store any more is moved aside with what lies beside it, and a new one works.
func TestDamagedFileIsMovedAside(t *testing.T) {
	t.Parallel()
	overwrite := func(at int, with string) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], with); return b }
	}
	for _, c := range []struct {
		name   string
		damage func([]byte) []byte
	}{
		{"garbage", func([]byte) []byte { return []byte(strings.Repeat("garbage ", 1000)) }},
		{"a short text", func([]byte) []byte { return []byte("providers:\n") }},
		{"a bad magic", overwrite(0, "SQLite format 4")},
		{"a bad page size", overwrite(16, "\x12\x34")},
		{"an unknown write format", overwrite(18, "\x09")},
		{"an unknown read format", overwrite(19, "\x09")},
		{"an unknown schema format", overwrite(44, "\x00\x00\x00\x63")},
		{"an impossible version", overwrite(60, "\x7f\x00\x00\x01")},
		{"a forgotten version", overwrite(60, "\x00\x00\x00\x00")},
		{"zeros in the middle", func(b []byte) []byte { clear(b[8192:12288]); return b }},
		{"a schema of zeros", func(b []byte) []byte { clear(b[100:4096]); return b }},
		{"cut in a page", func(b []byte) []byte { return b[:len(b)-1000] }},
		{"a byte short", func(b []byte) []byte { return b[:len(b)-1] }},
		{"cut after a page", func(b []byte) []byte { return b[:8192] }},
		{"cut in the header", func(b []byte) []byte { return b[:50] }},
		{"a single byte", func(b []byte) []byte { return b[:1] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filled(t, 300)
			b := c.damage(readFile(t, path))
			writeFile(t, path, b)
			s := mustOpen(t, path)
			moved, why := s.Moved()
			if want := path + ".corrupt-20260102T030405Z"; moved != want {
				t.Fatalf("moved to %q (%v), want %q", moved, why, want)
			}
			if !errors.Is(why, ErrDamaged) {
				t.Errorf("the reason %v is not ErrDamaged", why)
			}
			if !slices.Equal(readFile(t, moved), b) {
				t.Error("the moved file was changed")
			}
			wantWorking(t, s)
		})
	}
}

// wantWorking fails unless the store is empty, and keeps what it is given.
func wantWorking(t *testing.T, s *Store) {
	t.Helper()
	if got := mustLoad(t, s); len(got) != 0 {
		t.Fatalf("%d records in the new store, want none", len(got))
	}
	mustApply(t, s, storetest.Many(5)...)
	mustClose(t, s)
	s = mustOpen(t, s.Path())
	if moved, why := s.Moved(); moved != "" {
		t.Fatalf("the new store was moved too: %v", why)
	}
	if got := mustLoad(t, s); len(got) != 5 {
		t.Fatalf("%d records, want 5", len(got))
	}
	mustClose(t, s)
}

// The log goes with its file: left behind it would be played into the next one.
func TestDamagedFileTakesItsLogAlong(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string][]byte{"garbage": []byte(strings.Repeat("garbage ", 1000)), "empty": {}} {
		path := filled(t, 500)
		s := mustOpen(t, path)
		mustApply(t, s, storetest.Many(2)...)
		files := map[string][]byte{"": damage, "-wal": readFile(t, path+"-wal"), "-shm": readFile(t, path+"-shm")}
		mustClose(t, s)
		for end, b := range files {
			writeFile(t, path+end, b)
		}
		s = mustOpen(t, path)
		moved, why := s.Moved()
		if moved == "" {
			t.Fatalf("%s: not moved", name)
		}
		if got := readFile(t, moved+"-wal"); !slices.Equal(got, files["-wal"]) {
			t.Errorf("%s (%v): the log beside the moved file has %d bytes, want %d", name, why, len(got), len(files["-wal"]))
		}
		wantWorking(t, s)
	}
}

// Several files that are moved within a second get names of their own.
func TestMovedNamesDoNotCollide(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	for i, want := range []string{"", "-2", "-3"} {
		writeFile(t, path, []byte(strings.Repeat("x", 5000+i)))
		s := mustOpen(t, path)
		if moved, _ := s.Moved(); moved != path+".corrupt-20260102T030405Z"+want {
			t.Fatalf("file %d was moved to %s", i, moved)
		}
		mustClose(t, s)
	}
}

// Damage that comes after the check at the start is met by Load, with the same end.
func TestDamageWhileOpen(t *testing.T) {
	t.Parallel()
	path := filled(t, 5_000)
	s := mustOpen(t, path)
	b := readFile(t, path)
	clear(b[4096*4 : 4096*40])
	writeFile(t, path, b)
	if got := mustLoad(t, s); len(got) != 0 {
		t.Fatalf("%d records from a damaged file", len(got))
	}
	if moved, why := s.Moved(); moved == "" || !errors.Is(why, ErrDamaged) {
		t.Fatalf("moved to %q because of %v", moved, why)
	}
	wantWorking(t, s)
}

// Whatever single bytes change or wherever the file ends: opening and loading go well, and
// either the file was moved aside, or no more records differ than bytes were changed.
func TestRandomDamage(t *testing.T) {
	t.Parallel()
	const records = 400
	whole := readFile(t, filled(t, records))
	want := byID(storetest.Many(records))
	moves := 0
	rapid.Check(t, func(rt *rapid.T) {
		b := slices.Clone(whole)
		var flips []int
		if rapid.Bool().Draw(rt, "cut") {
			b = b[:rapid.IntRange(1, len(b)-1).Draw(rt, "size")]
		}
		// The header and the schema are a small part of the file and the most of what can go wrong.
		at := rapid.OneOf(rapid.IntRange(0, len(b)-1), rapid.IntRange(0, min(len(b), 4096)-1), rapid.IntRange(0, min(len(b), 110)-1))
		for range rapid.IntRange(0, 6).Draw(rt, "flips") {
			i := at.Draw(rt, "at")
			b[i] ^= rapid.ByteRange(1, 255).Draw(rt, "xor")
			flips = append(flips, i)
		}
		path := newPath(t)
		writeFile(t, path, b)
		s, err := Open(t.Context(), path, Options{})
		if errors.Is(err, ErrNewer) {
			if !slices.ContainsFunc(flips, func(i int) bool { return i >= 60 && i < 64 }) {
				rt.Fatalf("%v, though the version was not touched", err)
			}
			return
		}
		if err != nil {
			rt.Fatalf("Open: %v", err)
		}
		defer func() { _ = s.Close() }()
		got, err := s.Load(t.Context())
		if err != nil {
			rt.Fatalf("Load: %v", err)
		}
		if moved, _ := s.Moved(); moved != "" {
			moves++
			if len(got) != 0 || !slices.Equal(readFile(t, moved), b) {
				rt.Fatalf("%d records from a new file, or the moved one was changed", len(got))
			}
			return
		}
		differ := 0
		for id, r := range byID(got) {
			if want[id] != r {
				differ++
			}
		}
		if len(got)+len(s.Skipped()) != records || differ > len(flips) {
			rt.Fatalf("%d changed bytes gave %d records and %d skipped of %d, %d of them wrong", len(flips), len(got), len(s.Skipped()), records, differ)
		}
		if err := s.Apply(t.Context(), changes(storetest.Many(3))); err != nil {
			rt.Fatalf("Apply: %v", err)
		}
	})
	if moves == 0 {
		t.Error("no damage was ever noticed")
	}
}

// A log that was damaged in a crash ends where the damage is: whole batches, oldest first.
func TestRandomDamageOfTheLog(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := mustOpen(t, path)
	const batches = 40
	for n := 1; n <= batches; n++ {
		if err := s.Apply(t.Context(), batchOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	main, log := readFile(t, path), readFile(t, path+"-wal")
	mustClose(t, s)
	rapid.Check(t, func(rt *rapid.T) {
		b := slices.Clone(log)
		if rapid.Bool().Draw(rt, "cut") {
			b = b[:rapid.IntRange(0, len(b)).Draw(rt, "size")]
		}
		for range rapid.IntRange(0, 3).Draw(rt, "flips") {
			if len(b) > 0 {
				b[rapid.IntRange(0, len(b)-1).Draw(rt, "at")] ^= rapid.ByteRange(1, 255).Draw(rt, "xor")
			}
		}
		path := newPath(t)
		writeFile(t, path, main)
		writeFile(t, path+"-wal", b)
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			rt.Fatalf("Open: %v", err)
		}
		defer func() { _ = s.Close() }()
		got, err := s.Load(t.Context())
		if err != nil {
			rt.Fatalf("Load: %v", err)
		}
		n := 0
		for _, r := range got {
			n = max(n, r.Level)
		}
		want := map[resilience.RecordID]resilience.Record{}
		for i := 1; i <= n; i++ {
			for _, c := range batchOf(i) {
				if !c.Delete {
					want[c.Record.ID()] = c.Record
				}
			}
		}
		if len(got) != len(want) {
			rt.Fatalf("%d records, want the %d of the first %d batches", len(got), len(want), n)
		}
		for id, r := range byID(got) {
			if want[id] != r {
				rt.Fatalf("after batch %d: %+v, want %+v", n, r, want[id])
			}
		}
	})
}

func byID(records []resilience.Record) map[resilience.RecordID]resilience.Record {
	all := make(map[resilience.RecordID]resilience.Record, len(records))
	for _, r := range records {
		all[r.ID()] = r
	}
	return all
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzFile opens any bytes as a store: it goes well, or is refused as a newer or a foreign one.
func FuzzFile(f *testing.F) {
	whole := readFile(f, filled(f, 3))
	f.Add(whole)
	f.Add(whole[:4096])
	f.Add(whole[:100])
	f.Add([]byte("SQLite format 3\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := newPath(t)
		writeFile(t, path, b)
		s, err := Open(t.Context(), path, Options{Now: func() time.Time { return fixed }})
		if errors.Is(err, ErrNewer) || errors.Is(err, ErrForeign) {
			if !slices.Equal(readFile(t, path), b) {
				t.Fatalf("%v, and yet the file was changed", err)
			}
			return
		}
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		mustLoad(t, s)
		if moved, _ := s.Moved(); moved != "" && !slices.Equal(readFile(t, moved), b) {
			t.Fatal("the moved file was changed")
		}
		mustApply(t, s, storetest.Many(2)...)
		mustClose(t, s)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			t.Fatal("there is no file after all")
		}
	})
}
