package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/relay"
	"omniroute/resilience"
)

// stored relays what is asked of a stored response to the connection that has made it, and where that is not
// known from connection to connection until one has it.
func (g *Gateway) stored(w http.ResponseWriter, r *http.Request) {
	id, _, _ := strings.Cut(r.PathValue("id"), "/")
	if id == "" {
		g.noSuchCall(w, r)
		return
	}
	made, known := g.relay.Maker(id)
	anywhere, some := g.o.Router().Stored()
	if known && !g.theirs(r, made) || !known && (!some || g.client(r).Restricted()) {
		g.fail(w, r, unknownResponse(id, "id"))
		return
	}
	body, report := g.readBody(w, r, g.o.Router().Config())
	if report != nil {
		g.fail(w, r, report)
		return
	}
	asked := &dialect.Request{Operation: dialect.OpOther, Path: r.URL.Path, Body: body.B, Stream: r.URL.Query().Get("stream") == "true"}
	q := &relay.Request{ID: idOf(w), Route: anywhere, Dialect: response, Asked: asked, Body: body, Stored: id, Caller: caller(r)}
	if known {
		var err error
		q.Pinned, asked.Model = &made.Target, made.Target.Provider+"/"+made.Target.Model
		if q.Route, q.Barred, err = g.resolve(r, response, asked.Model, ""); err != nil {
			body.Release()
			g.fail(w, r, refusal(err))
			return
		}
	}
	g.relay.Serve(w, r, q)
}

// pinned returns the name to ask the router for and the one target that a request can go to: one
// that goes on from a stored response has to meet the connection that has it.
func (g *Gateway) pinned(r *http.Request, previous, model string) (string, *resilience.Key, *dialect.ErrorReport) {
	if previous == "" {
		return model, nil, nil
	}
	made, known := g.relay.Maker(previous)
	switch {
	case !known:
		return model, nil, nil // one of its targets may know it
	case !g.theirs(r, made):
		return "", nil, unknownResponse(previous, "previous_response_id")
	}
	return made.Target.Provider + "/" + made.Target.Model, &made.Target, nil
}

// theirs reports whether a caller may have a stored response: one whose key may not have everything gets
// its own only, since what others asked for may be among what it may not have.
func (g *Gateway) theirs(r *http.Request, made relay.Maker) bool {
	return made.Caller == caller(r) || !g.client(r).Restricted()
}

func unknownResponse(id, param string) *dialect.ErrorReport {
	return &dialect.ErrorReport{Status: http.StatusNotFound, Param: param,
		Message: fmt.Sprintf("No response %s is known here.", cleanPath(id))}
}
