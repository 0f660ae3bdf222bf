package neutral

import "fmt"

// UnsupportedError says that a target's dialect cannot express a part of the client's request
// without which the answer would be another one. The target is to be skipped; when no target
// can do it, the client gets status 400 that names the field.
type UnsupportedError struct {
	// Field is the member in the client's own words, like "n" or "messages[2].content".
	Field string
	// Reason is the end of a sentence that begins with the field.
	Reason string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("The field %s %s.", e.Field, e.Reason)
}

// Unsupported makes an UnsupportedError.
func Unsupported(field, format string, args ...any) *UnsupportedError {
	return &UnsupportedError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
