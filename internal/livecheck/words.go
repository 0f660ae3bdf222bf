package livecheck

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"omniroute/classify"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// words says what the verdict means for the owner of the configuration.
func (q *question) words(err error) string {
	v := q.Verdict
	if v.Scope == resilience.ScopeNone {
		return "ok"
	}
	text := q.meaning(err)
	if q.Status != 0 {
		text = strconv.Itoa(q.Status) + ": " + text
	}
	wait := v.RetryAfter
	if !v.Until.IsZero() {
		wait = max(wait, time.Until(v.Until))
	}
	if wait = wait.Round(time.Second); wait > 0 {
		text += fmt.Sprintf("; it asks to come back in %v", wait)
	}
	return q.withoutSecrets(text)
}

func (q *question) meaning(err error) string {
	v := q.Verdict
	model := strconv.Quote(q.Model)
	if q.Model == "" {
		model = "the model"
	}
	const elsewhere = "there is no such call; look at base_url and dialect"
	if q.Status/100 == 3 {
		return elsewhere
	}
	switch v.Kind {
	case resilience.KindAuth:
		if q.connection.Key.Empty() {
			return "a key is needed and none is set"
		}
		return "the key is not accepted"
	case resilience.KindPermission:
		switch v.Scope {
		case resilience.ScopeModel:
			return "this key may not use " + model
		case resilience.ScopeProvider:
			return "the service refuses this place or network"
		}
		return "the account may not do this"
	case resilience.KindBilling:
		return "the account lacks credit, or its billing is not in order"
	case resilience.KindQuotaExhausted:
		return "the quota is used up"
	case resilience.KindRateLimit:
		return "too many requests just now, although the key is accepted"
	case resilience.KindModelNotFound:
		return model + " does not exist here, or not for this key"
	case resilience.KindModelOverloaded:
		if v.Scope == resilience.ScopeModel {
			return model + " has no capacity just now"
		}
		return "the service has no capacity just now"
	case resilience.KindServerError:
		return "the service fails"
	case resilience.KindTimeout:
		return "no answer came: " + reason(err)
	case resilience.KindNetwork:
		if v.Scope == resilience.ScopeLocal {
			return "this machine cannot make the call: " + reason(err)
		}
		return "the service cannot be reached: " + reason(err)
	case resilience.KindCanceled:
		return "the check was interrupted"
	case resilience.KindMalformedResponse:
		return "this is no answer of an API; look at base_url"
	case resilience.KindEmptyResponse:
		return "the answer is empty"
	case resilience.KindContentPolicy, resilience.KindContextLength, resilience.KindTooLarge:
		return "the service refuses a greeting (" + v.Kind.String() + ")"
	}
	if q.Status == 404 || q.Status == 405 {
		return elsewhere
	}
	if v.Kind == resilience.KindInvalidRequest {
		return "the request was not understood; look at base_url and dialect, or " + model + " does not chat"
	}
	return "an answer that no rule knows (" + v.Rule + ")"
}

// reason is a transport error in words.
func reason(err error) string {
	switch e := err.(type) { //nolint:errorlint // our own timer, never wrapped
	case nil:
		return "the connection broke"
	case *classify.TimeoutError:
		return fmt.Sprintf("%v were over", e.After)
	}
	return err.Error()
}

// withoutSecrets takes the connection's key, the provider's headers and the proxy's password out of a
// text, should an error have brought one along.
func (q *question) withoutSecrets(text string) string {
	hide := func(s config.Secret) {
		if !s.Empty() {
			text = strings.ReplaceAll(text, s.Reveal(), s.String())
		}
	}
	hide(q.connection.Key)
	if u := q.provider.Proxy(); u != nil {
		password, _ := u.User.Password()
		hide(config.NewSecret(password))
	}
	for _, h := range q.provider.Headers {
		hide(h.Value)
	}
	return text
}
