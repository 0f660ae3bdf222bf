// Package telemetry holds what is told of requests: to logs, to the admin API, to metrics.
package telemetry

import (
	"time"

	"omniroute/failover"
	"omniroute/internal/dialect"
)

// Story is what happened to one client request. It never holds a prompt, an answer or a secret.
type Story struct {
	ID       string
	At       time.Time
	Duration time.Duration
	// Method and Path are the client's; Model is the name that it asked for and Route what the
	// name stood for, empty when it stood for nothing.
	Method, Path string
	Model, Route string
	Stream       bool
	// Status is what the client got; 499 when it had left.
	Status int
	// FirstContent is when the answer began, 0 when none did.
	FirstContent time.Duration
	// Error is the code of the error that the client got, or why its stream broke off.
	Error    string
	Usage    dialect.Usage
	Attempts []failover.Record
	Skipped  []failover.Skip
}
