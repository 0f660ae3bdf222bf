package resilience

import "context"

// MaxAudits is how many entries an Auditor keeps; the oldest give way.
const MaxAudits = 10_000

// Audit is one thing that an operator did.
type Audit struct {
	// At is when.
	At Timestamp `json:"at"`
	// Actor is how the operator was known: token, loopback, dashboard, signal or file. Peer is the address
	// that it came from, empty where it came over none.
	Actor string `json:"actor"`
	Peer  string `json:"peer,omitempty"`
	// Action is what was done, Key to what; the zero Key is everything or nothing in particular.
	Action string `json:"action"`
	Key
	// Detail is more in words, such as how many exclusions were ended.
	Detail string `json:"detail,omitempty"`
}

// Auditor is a Store that keeps a trail of what operators did. Both methods may be called while others of the store
// run.
type Auditor interface {
	// Record keeps an entry. After an error it may be given again.
	Record(ctx context.Context, a Audit) error
	// Audits returns at most limit entries, the newest first.
	Audits(ctx context.Context, limit int) ([]Audit, error)
}
