package sqlite

import (
	"context"
	"fmt"
	"strings"

	"omniroute/resilience"
)

// table is where one layer lives. All tables share the first columns; people query them by hand.
type table struct {
	layer resilience.Layer
	name  string
	// lockoutMs is the column that holds Record.LockoutMs, empty where the layer has none.
	lockoutMs string
}

var tables = [...]table{
	{resilience.LayerBreaker, "domain_circuit_breakers", ""},
	{resilience.LayerConnection, "domain_connection_state", ""},
	{resilience.LayerModel, "domain_lockout_state", "lockout_duration_ms"},
	{resilience.LayerOperator, "domain_operator_exclusions", ""},
}

// columns are those that every table has, in the order in which upserts bind them.
var columns = []string{
	"provider", "connection", "model", "state", "kind", "level", "failures", "since_ms", "until_ms", "updated_ms", "detail",
}

func (t table) upsert() string {
	cols := columns
	if t.lockoutMs != "" {
		cols = append(cols[:len(cols):len(cols)], t.lockoutMs)
	}
	return fmt.Sprintf("INSERT OR REPLACE INTO %s (%s) VALUES (?%s)",
		t.name, strings.Join(cols, ", "), strings.Repeat(", ?", len(cols)-1))
}

func (t table) remove() string {
	return "DELETE FROM " + t.name + " WHERE provider = ? AND connection = ? AND model = ?"
}

// applicationID marks the file as ours (offset 68 of the file): "OmRo" in ASCII.
const applicationID = 0x4f6d526f

// migrations lead from each version of the schema to the next: the first makes version 1. An
// entry is never changed once it was released; a new version is a new entry.
var migrations = []migration{
	{"the tables of the three layers and of the operator's exclusions", schemaV1},
	{"the trail of what operators did", schemaV2},
}

type migration struct{ name, sql string }

// maxVersion bounds what is believed to be a version: a larger number is damage.
const maxVersion = 9999

// The columns that only repeat another one under the name by which it is known are computed, so
// that they cannot disagree. A deadline that does not exist is NULL there and 0 in until_ms.
const schemaV1 = `
CREATE TABLE domain_circuit_breakers (
  provider   TEXT NOT NULL,
  connection TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  state      TEXT NOT NULL,
  kind       TEXT NOT NULL DEFAULT 'unknown',
  level      INTEGER NOT NULL DEFAULT 0,
  failures   INTEGER NOT NULL DEFAULT 0,
  since_ms   INTEGER NOT NULL DEFAULT 0,
  until_ms   INTEGER NOT NULL DEFAULT 0,
  updated_ms INTEGER NOT NULL DEFAULT 0,
  detail     TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (provider, connection, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE domain_connection_state (
  provider   TEXT NOT NULL,
  connection TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  state      TEXT NOT NULL,
  kind       TEXT NOT NULL DEFAULT 'unknown',
  level      INTEGER NOT NULL DEFAULT 0,
  failures   INTEGER NOT NULL DEFAULT 0,
  since_ms   INTEGER NOT NULL DEFAULT 0,
  until_ms   INTEGER NOT NULL DEFAULT 0,
  updated_ms INTEGER NOT NULL DEFAULT 0,
  detail     TEXT NOT NULL DEFAULT '',
  rate_limited_until INTEGER GENERATED ALWAYS AS (nullif(until_ms, 0)) VIRTUAL,
  backoff_level      INTEGER GENERATED ALWAYS AS (level) VIRTUAL,
  cause              TEXT    GENERATED ALWAYS AS (kind) VIRTUAL,
  PRIMARY KEY (provider, connection, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE domain_lockout_state (
  provider   TEXT NOT NULL,
  connection TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  state      TEXT NOT NULL,
  kind       TEXT NOT NULL DEFAULT 'unknown',
  level      INTEGER NOT NULL DEFAULT 0,
  failures   INTEGER NOT NULL DEFAULT 0,
  since_ms   INTEGER NOT NULL DEFAULT 0,
  until_ms   INTEGER NOT NULL DEFAULT 0,
  updated_ms INTEGER NOT NULL DEFAULT 0,
  detail     TEXT NOT NULL DEFAULT '',
  lockout_duration_ms INTEGER NOT NULL DEFAULT 0,
  locked_until        INTEGER GENERATED ALWAYS AS (nullif(until_ms, 0)) VIRTUAL,
  PRIMARY KEY (provider, connection, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE domain_operator_exclusions (
  provider   TEXT NOT NULL,
  connection TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  state      TEXT NOT NULL,
  kind       TEXT NOT NULL DEFAULT 'unknown',
  level      INTEGER NOT NULL DEFAULT 0,
  failures   INTEGER NOT NULL DEFAULT 0,
  since_ms   INTEGER NOT NULL DEFAULT 0,
  until_ms   INTEGER NOT NULL DEFAULT 0,
  updated_ms INTEGER NOT NULL DEFAULT 0,
  detail     TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (provider, connection, model)
) STRICT, WITHOUT ROWID;
`

// migrate brings the file to the version of the last of ms, one transaction a step, so that a
// crash or a full disk leaves a version that is whole.
func migrate(ctx context.Context, c *conn, ms []migration) error {
	version, err := c.queryInt(ctx, "PRAGMA user_version")
	if err != nil {
		return err
	}
	for v := int(version); v < len(ms); v++ {
		script := ms[v].sql
		script += fmt.Sprintf("PRAGMA user_version = %d;", v+1)
		if err := c.transact(ctx, func() error { return c.exec(ctx, script) }); err != nil {
			return fmt.Errorf("migrate to schema version %d (%s): %w", v+1, ms[v].name, err)
		}
	}
	return nil
}

const schemaV2 = `
CREATE TABLE operator_audit (
  id         INTEGER PRIMARY KEY,
  at_ms      INTEGER NOT NULL,
  actor      TEXT NOT NULL,
  peer       TEXT NOT NULL DEFAULT '',
  action     TEXT NOT NULL,
  provider   TEXT NOT NULL DEFAULT '',
  connection TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  detail     TEXT NOT NULL DEFAULT ''
) STRICT;
`
