package sqlite

import (
	"testing"

	"omniroute/resilience"
	"omniroute/store/storetest"
)

func TestAudits(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s, err := Open(t.Context(), path, Options{audits: 50})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Audits(t, s, 50)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := mustOpen(t, path).Audits(t.Context(), 1); err != nil || len(got) != 1 || got[0].Actor != "token" {
		t.Errorf("after a restart: %v, %v", got, err)
	}
}

// TestAuditsFromTheFirstVersion: a file of the version before there were audits gets the table and keeps its rows.
func TestAuditsFromTheFirstVersion(t *testing.T) {
	t.Parallel()
	path := filled(t, 5)
	c := shell(t, path)
	run(t, c, "DROP TABLE operator_audit; PRAGMA user_version = 1")
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	if err := s.Record(t.Context(), resilience.Audit{Action: "reset"}); err != nil {
		t.Fatal(err)
	}
	if records, err := s.Load(t.Context()); err != nil || len(records) == 0 {
		t.Errorf("%d records, %v", len(records), err)
	}
}
