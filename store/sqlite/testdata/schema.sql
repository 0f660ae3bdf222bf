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
