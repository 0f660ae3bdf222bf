package gateway

import (
	"net/http"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/anthropic"
	"omniroute/internal/dialect/gemini"
	"omniroute/internal/dialect/openai"
	"omniroute/internal/dialect/responses"
	"omniroute/internal/dialect/translate"
)

var (
	chat     dialect.Dialect = openai.Dialect{}
	response dialect.Dialect = responses.Dialect{}
	messages dialect.Dialect = anthropic.Dialect{}
	google   dialect.Dialect = gemini.Dialect{}
)

// dialectOf returns the dialect that a client speaks: its path tells, and where several APIs share
// one, the header that only one of them has.
func dialectOf(r *http.Request) dialect.Dialect {
	path := r.URL.Path
	list := path == "/v1/models" || strings.HasPrefix(path, "/v1/models/") && r.Method != http.MethodPost
	switch {
	case path == helloPath, list && r.Header.Get("Anthropic-Version") != "":
		return messages
	case list:
		return chat
	}
	return translate.OfPath(path)
}

// helloPath is a probe that Claude Code sends when it starts, without a key.
const helloPath = "/api/hello"

// hello answers the probe, which wants nothing but an answer.
func hello(w http.ResponseWriter, _ *http.Request) { writeJSON(w, struct{}{}) }
