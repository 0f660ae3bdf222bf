package telemetry

// Recovery is what became of an answer that broke off.
type Recovery struct {
	Outcome RecoveryOutcome
	// Way is how the answer was gone on with: "prefill" by a model that was given its beginning,
	// "restart" by one that said it again. Empty where none did.
	Way string
	// Bytes is how much of the text the client had.
	Bytes int
	// Why is why it could not be tried.
	Why string
}

// RecoveryOutcome says how a recovery ended.
type RecoveryOutcome string

// The outcomes.
const (
	Recovered    RecoveryOutcome = "recovered" // the client has the whole answer
	NotRecovered RecoveryOutcome = "failed"    // no attempt went on exactly where it broke off, or one broke off again
	NotAttempted RecoveryOutcome = "ruled_out" // it was no answer that can be gone on with
)
