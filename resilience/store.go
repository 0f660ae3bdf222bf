package resilience

import "context"

// Record is one stored gate: what a restart must know to behave as if there had been none.
// Times are unix milliseconds of the wall clock.
type Record struct {
	// Layer picks the table: LayerBreaker is domain_circuit_breakers, LayerConnection
	// domain_connection_state, LayerModel domain_lockout_state, LayerOperator
	// domain_operator_exclusions.
	Layer Layer
	Key   Key
	// State is a word for people: "CLOSED", "DEGRADED", "OPEN", "HALF_OPEN" for breakers, else
	// "counting", "cooling", "locked", "quarantined" or "excluded".
	State    string
	Kind     Kind
	Level    int
	Failures int
	SinceMs  int64
	// UntilMs is the end of the exclusion, 0 when there is none (or none that is known:
	// a quarantine).
	UntilMs   int64
	UpdatedMs int64
	// LockoutMs is the length of the last lock without an upstream hint; lockouts only.
	LockoutMs int64
	// Detail is JSON that only the engine reads, with what the columns above do not say.
	Detail string
}

// RecordID is the identity of a Record: one row of one table.
type RecordID struct {
	Layer Layer
	Key   Key
}

// ID returns the record's identity.
func (r Record) ID() RecordID { return RecordID{r.Layer, r.Key} }

// Change is one write: the new value of a record or, with Delete, its end.
// For a deletion only Record.Layer and Record.Key count.
type Change struct {
	Record Record
	Delete bool
}

// Store keeps the gates' state beyond the process. The engine calls it from one goroutine,
// never while a request waits, and repeats what failed, so an implementation needs neither
// retries nor locks against itself.
//
// Apply makes all changes or none. Applying the same changes again must be harmless: a later
// value of a record replaces an earlier one whole. Load returns every record, in any order.
// Both return an error that says what to do where a person can act; the engine then goes on
// from memory, reports persistence as degraded and tries again.
type Store interface {
	Load(ctx context.Context) ([]Record, error)
	Apply(ctx context.Context, changes []Change) error
}
