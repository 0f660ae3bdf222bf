package gateway

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"omniroute/internal/config"
)

// sessionHeader names the conversation that a request belongs to.
const sessionHeader = "X-Session-Id"

// sessionOf returns the name of the session that a request belongs to, "" when it names none: the
// header, or else the first of the configured members of the body that is a string or a number.
func sessionOf(r *http.Request, a *config.Affinity, body []byte) string {
	if id := strings.TrimSpace(r.Header.Get(sessionHeader)); id != "" {
		return id
	}
	if len(a.Fields) == 0 || len(body) == 0 || body[0] != '{' {
		return ""
	}
	for _, field := range a.Fields {
		if v := gjson.GetBytes(body, field); v.Type == gjson.String || v.Type == gjson.Number {
			if id := v.String(); id != "" {
				return field + "=" + id
			}
		}
	}
	return ""
}
