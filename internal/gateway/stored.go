package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"omniroute/internal/catalog"
	"omniroute/internal/dialect"
	"omniroute/internal/relay"
	"omniroute/resilience"
)

// stored relays what is asked of a stored response to the connection that has made it.
func (g *Gateway) stored(w http.ResponseWriter, r *http.Request) {
	id, _, _ := strings.Cut(r.PathValue("id"), "/")
	key, ok := g.relay.Maker(id)
	if !ok {
		g.fail(w, r, &dialect.ErrorReport{Status: http.StatusNotFound, Param: "id",
			Message: fmt.Sprintf("No response %s is known here: it was made too long ago, before the last start, or elsewhere.", cleanPath(id))})
		return
	}
	body, report := readBody(w, r, g.o.Router().Config().MaxBody)
	if report != nil {
		g.fail(w, r, report)
		return
	}
	asked := &dialect.Request{Operation: dialect.OpOther, Path: r.URL.Path, Body: body.B, Model: key.Provider + "/" + key.Model,
		Stream: r.URL.Query().Get("stream") == "true"}
	to, err := g.o.Router().Resolve(catalog.Responses, asked.Model)
	if err != nil {
		body.Release()
		g.fail(w, r, refusal(err))
		return
	}
	g.relay.Serve(w, r, &relay.Request{ID: idOf(w), Route: to, Dialect: response, Asked: asked, Body: body, Pinned: key, Caller: caller(r)})
}

// pinned returns the name to ask the router for and the one target that a request can go to: one
// that goes on from a stored response has to meet the connection that has it.
func (g *Gateway) pinned(previous, model string) (string, resilience.Key) {
	if previous != "" {
		if key, ok := g.relay.Maker(previous); ok {
			return key.Provider + "/" + key.Model, key
		}
	}
	return model, resilience.Key{}
}
