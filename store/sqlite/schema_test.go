package sqlite

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniroute/resilience"
	"omniroute/store/storetest"
)

// What people type into a database shell must give what the columns promise.
func TestQueriesByHand(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	rec := func(l resilience.Layer, c, m, state string, k resilience.Kind, until int64) resilience.Record {
		return resilience.Record{
			Layer: l, Key: resilience.Key{Provider: "openai", Connection: c, Model: m}, State: state, Kind: k,
			Level: 2, Failures: 3, SinceMs: 10, UntilMs: until, UpdatedMs: 11, Detail: "{}",
		}
	}
	lock := rec(resilience.LayerModel, "main", "gpt", "locked", resilience.KindServerError, 40)
	lock.LockoutMs = 15000
	mustApply(t, s,
		rec(resilience.LayerBreaker, "", "", "OPEN", resilience.KindTimeout, 20),
		rec(resilience.LayerConnection, "main", "", "cooling", resilience.KindRateLimit, 30),
		rec(resilience.LayerConnection, "spare", "", "quarantined", resilience.KindBilling, 0),
		lock,
		rec(resilience.LayerOperator, "main", "", "excluded", resilience.KindUnknown, 50),
	)
	c := shell(t, s.Path())
	const shared = "SELECT provider, connection, model, state, kind, level, failures, since_ms, until_ms, updated_ms, detail"
	for query, want := range map[string][]string{
		shared + " FROM domain_circuit_breakers":                                                   {"openai|||OPEN|timeout|2|3|10|20|11|{}"},
		shared + " FROM domain_connection_state":                                                   {"openai|main||cooling|rate_limit|2|3|10|30|11|{}", "openai|spare||quarantined|billing|2|3|10|0|11|{}"},
		shared + " FROM domain_lockout_state":                                                      {"openai|main|gpt|locked|server_error|2|3|10|40|11|{}"},
		shared + " FROM domain_operator_exclusions":                                                {"openai|main||excluded|unknown|2|3|10|50|11|{}"},
		"SELECT connection, rate_limited_until, backoff_level, cause FROM domain_connection_state": {"main|30|2|rate_limit", "spare|<nil>|2|billing"},
		"SELECT model, locked_until, lockout_duration_ms FROM domain_lockout_state":                {"gpt|40|15000"},
		"PRAGMA user_version":                                                                      {"2"},
		"PRAGMA application_id":                                                                    {"1332564591"},
		"PRAGMA journal_mode":                                                                      {"wal"},
	} {
		if diff := cmp.Diff(want, rows(t, c, query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// Rows that make no sense are left out and reported; the others are loaded.
func TestSkipped(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		s := mustOpen(t, newPath(t))
		kept := storetest.Many(3)
		if plain {
			kept[1].Key.Model = "a\x1fb"
		}
		mustApply(t, s, kept...)
		c := shell(t, s.Path())
		run(t, c, `INSERT INTO domain_lockout_state (provider, connection, model, state, kind) VALUES ('p', 'c', 'm', 'locked', 'sunspots')`)
		run(t, c, `INSERT INTO domain_lockout_state (provider, state, lockout_duration_ms) VALUES ('long', 'locked', -5)`)
		run(t, c, `INSERT INTO domain_connection_state (provider, connection, state, level) VALUES ('p', 'c', 'cooling', -1)`)
		run(t, c, `INSERT INTO domain_circuit_breakers (provider, state, until_ms) VALUES ('p', 'OPEN', -9223372036854775808)`)
		for range 2 {
			if got := mustLoad(t, s); len(got) != 3 {
				t.Fatalf("%d records, want the 3 good ones", len(got))
			}
			var got []string
			for _, k := range s.Skipped() {
				line := k.String()
				if i := strings.Index(line, " (one of"); i > 0 {
					line = line[:i]
				}
				got = append(got, line)
			}
			want := []string{
				"row p of domain_circuit_breakers was skipped: until_ms is -9223372036854775808, which is negative",
				"row p/c of domain_connection_state was skipped: level is -1, which is negative",
				"row long of domain_lockout_state was skipped: lockout_duration_ms is -5, which is negative",
				`row p/c/m of domain_lockout_state was skipped: unknown kind "sunspots"`,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("plain %v: skipped rows (-want +got):\n%s", plain, diff)
			}
		}
		// The engine's next word on the key repairs the row.
		mustApply(t, s, resilience.Record{Layer: resilience.LayerModel, Key: resilience.Key{Provider: "p", Connection: "c", Model: "m"}})
		if got := mustLoad(t, s); len(got) != 4 || len(s.Skipped()) != 3 {
			t.Fatalf("%d records and %d skipped, want 4 and 3", len(got), len(s.Skipped()))
		}
	}
}

func TestNewerVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} { // with and without a log beside the file
		path := filled(t, 50)
		c := shell(t, path)
		run(t, c, "PRAGMA user_version = 7; CREATE TABLE later (x)")
		if !open {
			if err := c.close(); err != nil {
				t.Fatal(err)
			}
		}
		before := snapshot(t, path)
		_, err := Open(t.Context(), path, Options{})
		wantReason(t, err, ErrNewer, "schema version 7, this one knows up to 2")
		if diff := cmp.Diff(before, snapshot(t, path)); diff != "" {
			t.Fatalf("log open %v: the folder changed (-before +after):\n%s", open, diff)
		}
	}
}

func TestForeignDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	c, err := dial(t.Context(), path, map[string][]string{"mode": {"rwc"}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, "CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x'); PRAGMA user_version = 54")
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, path)
	_, err = Open(t.Context(), path, Options{})
	wantReason(t, err, ErrForeign, "Choose another path")
	if diff := cmp.Diff(before, snapshot(t, path)); diff != "" {
		t.Fatalf("the folder changed (-before +after):\n%s", diff)
	}
}

// snapshot is what lies in the store's folder, but for the lock and the shared index of the
// log, which holds nothing that lasts.
func snapshot(t *testing.T, path string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, ".lock") && !strings.HasSuffix(f, "-shm") {
			all[filepath.Base(f)] = string(b)
		}
	}
	return all
}

// Each step is whole: one that fails leaves the version before it, with all records.
func TestMigrate(t *testing.T) {
	t.Parallel()
	path := filled(t, 20)
	c := shell(t, path)
	version := func() string { return rows(t, c, "PRAGMA user_version")[0] }
	good := migration{"a note", "ALTER TABLE domain_lockout_state ADD COLUMN note TEXT;"}
	bad := migration{"cannot be", "CREATE TABLE half (x); DROP TABLE nothing;"}

	err := migrate(context.Background(), c, append(migrations[:2:2], good, bad))
	if err == nil || !strings.Contains(err.Error(), "schema version 4 (cannot be)") {
		t.Fatalf("error %v, want one that names the step", err)
	}
	if got := version(); got != "3" {
		t.Fatalf("version %s, want 3", got)
	}
	if got := rows(t, c, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"); got[0] != "0" {
		t.Fatal("half a step was kept")
	}
	if err := migrate(context.Background(), c, append(migrations[:2:2], good)); err != nil {
		t.Fatalf("a store of the present version: %v", err)
	}
	if got := rows(t, c, "SELECT count(*) FROM domain_lockout_state WHERE note IS NULL"); got[0] != "19" {
		t.Fatalf("%s lockouts after the migration, want 19", got[0])
	}
}

// A released migration is never changed: files in the field were made by it.
func TestReleasedSchemaIsFrozen(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	var got bytes.Buffer
	for _, line := range rows(t, shell(t, s.Path()), "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name") {
		got.WriteString(line + ";\n")
	}
	want, err := os.ReadFile("testdata/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Fatalf("the schema is not that of testdata/schema.sql; a change needs a new migration (-want +got):\n%s", diff)
	}
}
