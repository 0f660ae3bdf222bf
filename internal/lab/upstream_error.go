package lab

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Error is what a service answers when it refuses: a status and OpenAI's error envelope.
type Error struct {
	Status              int
	Type, Code, Message string
	Param               string
	// Header is sent along.
	Header http.Header
	// Hint is put where its form says.
	Hint Hint
}

// envelope returns the error as JSON.
func (e Error) envelope() []byte {
	type null = *string
	str := func(s string) null {
		if s == "" {
			return nil
		}
		return &s
	}
	type inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   null   `json:"param"`
		Code    null   `json:"code"`
		Details []any  `json:"details,omitempty"`
	}
	in := inner{e.Message + e.Hint.prose(), e.Type, str(e.Param), str(e.Code), e.Hint.details()}
	b, err := json.Marshal(map[string]inner{"error": in})
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

func (e Error) write(w http.ResponseWriter, now time.Time) {
	h := w.Header()
	for k, v := range e.Header {
		h[k] = v
	}
	e.Hint.set(h, now)
	body := e.envelope()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(e.Status)
	w.Write(body) // the client may be gone; there is nobody to tell
}

// fault makes the error a fault of this name.
func (e Error) fault(name string) Fault {
	return answers(name, func(x *exchange) {
		if x.wait(x.plan.headers) {
			e.write(x.w, x.now)
		}
	})
}

func errTooLarge() Error {
	return Error{Status: 413, Type: "invalid_request_error", Code: "request_too_large", Message: "The request body is larger than this service accepts."}
}

func errUnauthorized() Error {
	return Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "The API key in this request is not one of ours."}
}

func errNoPath(method, path string) Error {
	return Error{Status: 404, Type: "invalid_request_error", Code: "unknown_url", Message: fmt.Sprintf("There is nothing at %s %s.", method, path)}
}

func errMethod(method string) Error {
	return Error{Status: 405, Type: "invalid_request_error", Code: "method_not_allowed", Message: fmt.Sprintf("%s is not allowed here; use POST.", method)}
}

func errInvalid(param, message string) Error {
	return Error{Status: 400, Type: "invalid_request_error", Param: param, Message: message}
}

func errModelNotFound(model, why string) Error {
	msg := fmt.Sprintf("The model `%s` does not exist or this key has no access to it.", model)
	if why != "" {
		msg = why
	}
	return Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Param: "model", Message: msg}
}
