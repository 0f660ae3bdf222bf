package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Problem is an answer that is an error. Its text says what to do.
type Problem struct {
	// Status is the HTTP status.
	Status int `json:"-"`
	// Code is a word for programs: invalid_request, unauthorized, forbidden, not_found,
	// method_not_allowed or internal.
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

func refuse(status int, code, format string, args ...any) *Problem {
	return &Problem{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *Problem {
	return refuse(http.StatusBadRequest, "invalid_request", format, args...)
}

func notAllowed(w http.ResponseWriter, r *http.Request, methods map[string]handler) error {
	allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
	w.Header().Set("Allow", allowed)
	return refuse(http.StatusMethodNotAllowed, "method_not_allowed", "%s does not take %s; send %s", r.URL.Path, shown(r.Method), allowed)
}

// WriteError answers with an error: a *Problem as it is, any other as a bug.
func WriteError(w http.ResponseWriter, err error) {
	var p *Problem
	if !errors.As(err, &p) {
		p = refuse(http.StatusInternalServerError, "internal", "%v", err)
	}
	writeJSON(w, p.Status, map[string]*Problem{"error": p})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // only a bug: what is sent are our own types
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer cannot be written as JSON"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// maxRequest bounds a request's body, in bytes.
const maxRequest = 64 << 10

// read reads the body of a request strictly: one JSON object with known fields only. fields lists
// them for the message, example shows what to send.
func read(w http.ResponseWriter, r *http.Request, into any, fields, example string) error {
	return readUpTo(maxRequest, w, r, into, fields, example)
}

// readUpTo is read with another bound, in bytes.
func readUpTo(most int64, w http.ResponseWriter, r *http.Request, into any, fields, example string) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return refuse(http.StatusRequestEntityTooLarge, "invalid_request", "the body is larger than %d bytes; send an object such as %s", most, example)
		}
		return invalid("the body could not be read; send it again")
	}
	if len(strings.TrimSpace(string(body))) == 0 {
		return invalid("the body is empty; send an object such as %s", example)
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badJSON(err, fields, example)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("there is something behind the object; send one object such as %s", example)
	}
	return nil
}

// badJSON says what is wrong with a body.
func badJSON(err error, fields, example string) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return invalid("%s must be a %s, not a %s; send an object such as %s", kind.Field, kind.Type.Kind(), kind.Value, example)
	case errors.As(err, &kind):
		return invalid("the body is a %s; send an object such as %s", kind.Value, example)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return invalid("unknown field %s; the fields are %s", shown(name), fields)
	}
	return invalid("the body is not JSON (%v); send an object such as %s", err, example)
}

// shown bounds what an error repeats of a request.
func shown(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
