package neutral

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
)

// Decode reads an upstream's JSON. Members of another type than v has are left out: an answer
// is not thrown away for a detail.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// DecodeRequest reads a client's JSON, of which every member must have its type. The error is
// a *dialect.RequestError.
func DecodeRequest(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*dialect.RequestError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		e.Field = strings.TrimPrefix(e.Field, "request.") // a struct of ours within another
		field := e.Field
		if field == "" {
			field = "(body)"
		}
		return &dialect.RequestError{Param: e.Field, Offset: int(e.Offset),
			Message: "The field " + field + " must not be a JSON " + e.Value + "."}
	}
	return &dialect.RequestError{Offset: -1, Message: "The request's body is not valid JSON: " + err.Error() + "."}
}

// Encode writes JSON without escapes for HTML. The values of the dialects are strings, numbers,
// named values and JSON that was read before, so that it cannot fail; if it does, that is a
// bug, and the gateway answers as for any other.
func Encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("dialect: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// First returns the first byte of a JSON value that is not white space, 0 when there is none.
func First(raw []byte) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// Given reports whether a member is there and not null, false, 0, "", {} or [].
func Given(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "false", "0", `""`, "{}", "[]":
		return false
	}
	return true
}

// Some returns a member that is there and not null, else nil.
func Some(raw json.RawMessage) json.RawMessage {
	if First(raw) == 'n' {
		return nil
	}
	return raw
}

// Word returns a JSON string that was checked before, empty for any other value.
func Word(raw []byte) string {
	s := jsonscan.New(raw)
	return string(s.Text())
}

// Number returns a client's number in the bytes that it came in, empty for null.
func Number(raw json.RawMessage) json.Number {
	c := First(raw)
	if c != '-' && (c < '0' || c > '9') {
		return ""
	}
	return json.Number(bytes.TrimSpace(raw))
}

// Integer returns a pointer to a value.
func Integer(n int64) *int64 { return &n }

// True returns a pointer to true or false.
func True(b bool) *bool { return &b }

// Int is a whole number of a client's. Some write one with a fraction of zero, and Google's JSON
// knows it in a string too.
type Int int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *Int) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if First(raw) == '"' {
		text = Word(raw)
	}
	if First(raw) == 'n' {
		return nil
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		*n = Int(whole)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		kind := "string"
		if First(raw) != '"' {
			kind = "number " + text
		}
		return &json.UnmarshalTypeError{Value: kind, Type: reflect.TypeFor[int64]()}
	}
	*n = Int(f)
	return nil
}
