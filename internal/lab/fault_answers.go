package lab

import (
	"fmt"
	"net/http"
)

// Refuse answers with any error.
func Refuse(e Error) Fault { return e.fault(fmt.Sprint(e.Status)) }

// Status answers with any status, content type and body.
func Status(status int, contentType, body string, header http.Header) Fault {
	return answers(fmt.Sprint(status), func(x *exchange) {
		x.writeRaw(status, contentType, []byte(body), header)
	})
}

// RateLimited answers 429: too many requests on this key.
func RateLimited(h Hint) Fault {
	name := "429"
	if h.Form == HintNone {
		name = "429-no-hint"
	}
	return Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "Too many requests on this key.", Hint: h}.fault(name)
}

// QuotaExhausted answers 429 with insufficient_quota: the account's credit is gone.
func QuotaExhausted() Fault {
	return Error{Status: 429, Type: "insufficient_quota", Code: "insufficient_quota", Message: "This account has used up its quota. Add credit to go on."}.fault("quota")
}

// Unauthorized answers 401: the key is refused, without a word about why.
func Unauthorized() Fault { return errUnauthorized().fault("401") }

// KeyRevoked answers 401 and says that the key was revoked.
func KeyRevoked() Fault {
	return Error{Status: 401, Type: "authentication_error", Code: "api_key_revoked", Message: "This API key has been revoked."}.fault("key-revoked")
}

// PaymentRequired answers 402: the balance is too low.
func PaymentRequired() Fault {
	return Error{Status: 402, Type: "billing_error", Code: "insufficient_balance", Message: "The account's balance is insufficient for this request."}.fault("402")
}

// Forbidden answers 403 and names the model that this key may not use.
func Forbidden() Fault {
	return answers("403", func(x *exchange) {
		x.refuse(Error{Status: 403, Type: "permission_error", Code: "model_access_denied", Param: "model",
			Message: fmt.Sprintf("This project does not have access to the model `%s`.", x.model)})
	})
}

// Challenge answers 403 with a page that asks a browser to prove itself.
func Challenge() Fault {
	return answers("challenge", func(x *exchange) {
		x.writeRaw(403, "text/html; charset=UTF-8", []byte(challengePage), http.Header{"Server": {"cloudflare"}, "Cf-Mitigated": {"challenge"}})
	})
}

// ModelNotFound answers 404: the asked model does not exist.
func ModelNotFound() Fault {
	return answers("404", func(x *exchange) { x.refuse(errModelNotFound(x.model, "")) })
}

// ContextLength answers 400: the prompt is too long for the model.
func ContextLength() Fault {
	return Error{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Param: "messages",
		Message: "The prompt is longer than this model's maximum context length of 8192 tokens."}.fault("context-length")
}

// ContentPolicy answers 400: the prompt was refused by a filter.
func ContentPolicy() Fault {
	return Error{Status: 400, Type: "invalid_request_error", Code: "content_policy_violation",
		Message: "The prompt was rejected by the content policy."}.fault("content-filter")
}

// Invalid answers 400: the request has no valid shape.
func Invalid() Fault {
	return errInvalid("temperature", "The value of 'temperature' must be between 0 and 2.").fault("400")
}

// ServerError answers 500.
func ServerError() Fault {
	return Error{Status: 500, Type: "server_error", Code: "internal_error", Message: "Something broke on our side."}.fault("500")
}

// BadGateway answers 502 with a proxy's page instead of JSON.
func BadGateway() Fault {
	return answers("502", func(x *exchange) {
		x.writeRaw(502, "text/html", []byte(gatewayPage), http.Header{"Server": {"nginx"}})
	})
}

// Unavailable answers 503, with or without a hint.
func Unavailable(h Hint) Fault {
	return Error{Status: 503, Type: "server_error", Code: "service_unavailable", Message: "The service is down for the moment.", Hint: h}.fault("503")
}

// Overloaded answers 529, as services do that have no capacity left.
func Overloaded() Fault {
	return Error{Status: 529, Type: "overloaded_error", Code: "overloaded", Message: "The service is overloaded."}.fault("529")
}

// ModelOverloaded answers 503 and blames the asked model alone.
func ModelOverloaded(h Hint) Fault {
	return answers("model-overloaded", func(x *exchange) {
		x.refuse(Error{Status: 503, Type: "server_error", Code: "model_overloaded", Param: "model",
			Message: fmt.Sprintf("The model `%s` is currently overloaded.", x.model), Hint: h})
	})
}

// Hang accepts the request and never answers. It ends when the client leaves or the server stops.
func Hang() Fault {
	return answers("hang", func(x *exchange) { <-x.r.Context().Done() })
}

// ResetBeforeHeaders ends the connection with a TCP reset before any byte of an answer.
func ResetBeforeHeaders() Fault {
	return answers("reset", func(x *exchange) {
		if x.wait(x.plan.headers) {
			x.hangUp(true)
		}
	})
}

// CloseBeforeHeaders ends the connection in good order before any byte of an answer.
func CloseBeforeHeaders() Fault {
	return answers("close", func(x *exchange) {
		if x.wait(x.plan.headers) {
			x.hangUp(false)
		}
	})
}

// ResetReused ends a connection that carried a request before, with a reset before any byte; first
// requests on a connection are answered well. It is what an idle connection that died looks like.
func ResetReused() Fault { return reused("reset-reused", true) }

// CloseReused is ResetReused with a close in good order, as from a server that gave up the idle
// connection in the same moment.
func CloseReused() Fault { return reused("close-reused", false) }

func reused(name string, reset bool) Fault {
	end := answers(name, func(x *exchange) { x.hangUp(reset) })
	return Fault{Name: name, apply: func(x *exchange) {
		if x.reused {
			end.apply(x)
		}
	}}
}

// HTML200 answers 200 with a page, as captive portals and misconfigured proxies do.
func HTML200() Fault {
	return answers("html-200", func(x *exchange) {
		x.writeRaw(200, "text/html; charset=utf-8", []byte(loginPage), nil)
	})
}

// Empty answers 200 with nothing in it: no byte for a plain request, and for a streamed one a
// stream without an event.
func Empty() Fault {
	return answers("empty", func(x *exchange) {
		contentType := "application/json"
		if x.req.Stream {
			contentType = "text/event-stream"
		}
		x.writeRaw(200, contentType, nil, nil)
	})
}

const (
	gatewayPage = `<html>
<head><title>502 Bad Gateway</title></head>
<body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></body>
</html>
`
	challengePage = `<!DOCTYPE html><html><head><title>Just a moment...</title></head>
<body><div id="cf-challenge">Checking that you are a person.</div><script src="/cdn-cgi/challenge-platform/h/b/orchestrate"></script></body></html>
`
	loginPage = `<!DOCTYPE html><html><head><title>Sign in</title></head><body><form>Sign in to this network</form></body></html>
`
)
