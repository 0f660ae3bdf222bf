package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/gemini"
)

// noSuchCall answers what no call of this API takes: 405 where the path takes another method, and
// 404 where it takes none.
func (g *Gateway) noSuchCall(w http.ResponseWriter, r *http.Request) {
	path := cleanPath(r.URL.Path)
	if methods := methodsOf(r); methods != "" {
		w.Header().Set("Allow", methods)
		g.fail(w, r, &dialect.ErrorReport{Status: http.StatusMethodNotAllowed,
			Message: fmt.Sprintf("There is no %s %s here; the path takes %s.", r.Method, path, methods)})
		return
	}
	g.fail(w, r, &dialect.ErrorReport{Status: http.StatusNotFound,
		Message: fmt.Sprintf("There is no %s %s here; try POST /v1/chat/completions or GET /v1/models.", r.Method, path)})
}

// generating are the paths that have a name of their own among those that a POST is relayed for.
var generating = map[string]bool{"/v1/chat/completions": true, "/v1/completions": true, "/v1/responses": true, "/v1/embeddings": true,
	"/v1/messages": true, "/v1/messages/count_tokens": true}

// methodsOf returns the methods that the request's path takes, and nothing for a path that does not
// exist. Below /v1/ any POST may be somebody's call, so that a path that nobody knows takes POST;
// who only reads it is told that it is not there.
func methodsOf(r *http.Request) string {
	path := r.URL.Path
	if _, _, ok := gemini.SplitPath(path); ok || generating[path] {
		return http.MethodPost
	}
	for _, list := range []string{"/v1/models", "/v1beta/models"} {
		if path == list || strings.HasPrefix(path, list+"/") {
			return "GET, HEAD"
		}
	}
	switch {
	case strings.HasPrefix(path, "/v1/responses/") && path != "/v1/responses/":
		return "GET, HEAD, DELETE, POST"
	case strings.HasPrefix(path, "/v1/") && r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.MethodPost
	}
	return ""
}
