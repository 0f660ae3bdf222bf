// Package store holds what the stores beside it have in common: how they say what is wrong.
package store

// Error is what the functions of stores return, except where the caller's context has ended. Its text
// names the store, never a password of it, the reason and what to do.
type Error struct {
	Store  string // the path of a file, or the address of a server
	Reason error  // one of the reasons that the store's package lists, or nil
	Advice string // a sentence for the person who runs the gateway
	Err    error  // the cause, or nil
}

func (e *Error) Error() string {
	s := "store " + e.Store + ": "
	switch {
	case e.Reason != nil && e.Err != nil:
		s += e.Reason.Error() + " (" + e.Err.Error() + ")"
	case e.Reason != nil:
		s += e.Reason.Error()
	default:
		s += e.Err.Error()
	}
	if e.Advice != "" {
		s += ". " + e.Advice
	}
	return s
}

// Unwrap gives errors.Is and errors.As both the reason and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Reason, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
