package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"omniroute/resilience"
	"omniroute/store/storetest"
)

// TestMain lets the test binary play a gateway that is to be killed, see TestKill.
func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		if err := writeUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	shallow = raceDetector && !given("rapid.checks")
	if shallow {
		// The detector makes SQLite many times slower and looks at how goroutines meet, which is the
		// same in every example; the run without it tries them all. See CONTRIBUTING.md.
		if err := flag.Set("rapid.checks", "20"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// shallow says that the run is about races alone.
var shallow bool

// given reports whether a flag is on the command line.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Medium {
		path := filepath.Join(t.TempDir(), "state.db")
		return storetest.Medium{Open: func(t storetest.TB) resilience.Store {
			s, err := Open(context.Background(), path, Options{})
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			return s
		}}
	})
}

// fixed is the moment at which tests move files aside.
var fixed = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "state.db") }

func mustOpen(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, Options{Now: func() time.Time { return fixed }})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func mustApply(t testing.TB, s *Store, records ...resilience.Record) {
	t.Helper()
	if err := s.Apply(t.Context(), changes(records)); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

func mustLoad(t testing.TB, s *Store) []resilience.Record {
	t.Helper()
	records, err := s.Load(t.Context())
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return records
}

func changes(records []resilience.Record) []resilience.Change {
	cs := make([]resilience.Change, len(records))
	for i, r := range records {
		cs[i].Record = r
	}
	return cs
}

// filled makes a closed store with n records and returns its path.
func filled(t testing.TB, n int) string {
	t.Helper()
	path := newPath(t)
	s := mustOpen(t, path)
	mustApply(t, s, storetest.Many(n)...)
	mustClose(t, s)
	return path
}

// shell is a second program that has the file open, such as a database shell.
func shell(t testing.TB, path string) *conn {
	t.Helper()
	c, err := dial(t.Context(), path, writerParams(time.Second))
	if err != nil {
		t.Fatalf("open a shell: %v", err)
	}
	t.Cleanup(func() { _ = c.close() })
	return c
}

func run(t testing.TB, c *conn, sql string) {
	t.Helper()
	if err := c.exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// rows returns what a query prints, one string a row.
func rows(t testing.TB, c *conn, sql string) (all []string) {
	t.Helper()
	err := c.query(context.Background(), sql, func(row []sqldriver.Value) error {
		line := ""
		for i, v := range row {
			if i > 0 {
				line += "|"
			}
			line += fmt.Sprint(v)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}
