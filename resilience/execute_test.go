package resilience

import (
	"context"
	"errors"
)

var errBoom = errors.New("boom")

func failing(context.Context) error { return errBoom }
func fine(context.Context) error    { return nil }
