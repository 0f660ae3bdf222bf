package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/needs"
	"omniroute/internal/dialect/translate"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// maxExplained bounds a question with a client's request in it, in bytes.
const maxExplained = 16 << 20

// ExplainRequest is the body of POST /admin/v1/explain: a request that nobody makes.
type ExplainRequest struct {
	Model string `json:"model"`
	// Session names its session, Client the client key that it carries.
	Session string `json:"session,omitempty"`
	Client  string `json:"client,omitempty"`
	// Stream says that it wants a stream.
	Stream bool `json:"stream,omitempty"`
	// PromptTokens and MaxOutput are its size in tokens; 0 where nothing is known.
	PromptTokens int64 `json:"prompt_tokens,omitempty"`
	MaxOutput    int64 `json:"max_output,omitempty"`
	// Tools, Images and Schema: it offers tools, holds images, wants JSON of a schema.
	Tools  bool `json:"tools,omitempty"`
	Images bool `json:"images,omitempty"`
	Schema bool `json:"schema,omitempty"`
	// Body is a client's whole request, Path what it would be sent to, /v1/chat/completions where it says
	// nothing. It tells the size and the like, and which targets cannot take it in their dialect.
	Body json.RawMessage `json:"body,omitempty"`
	Path string          `json:"path,omitempty"`
}

// Explanation is the answer to POST /admin/v1/explain.
type Explanation struct {
	// Route is the plan that the model's name stands for.
	Route string `json:"route"`
	// Session is "home", "new" or "detour": what the first target is to the session. Empty without a
	// session, or where there is nothing to choose.
	Session    route.Affinity    `json:"session,omitempty"`
	Candidates []route.Candidate `json:"candidates"`
}

// asked reads the request that a client would send, nil where none is given, and its dialect.
func (q *ExplainRequest) asked() (*dialect.Request, dialect.Dialect, error) {
	path := cmp.Or(q.Path, "/v1/chat/completions")
	d := translate.OfPath(path)
	if len(q.Body) == 0 {
		return nil, d, nil
	}
	asked, err := d.ReadRequest(path, q.Body)
	if err == nil {
		asked, err = translate.AsChat(asked)
	}
	if err != nil {
		return nil, nil, invalid("the body is no request to %s: %v", shown(path), err)
	}
	return asked, d, nil
}

// unfit says by place which targets cannot take a request in their dialect, and why: what the relay skips.
func unfit(to *route.Route, d dialect.Dialect, asked *dialect.Request) []string {
	if asked == nil {
		return nil
	}
	out := make([]string, len(to.Plan.Targets))
	var source *translate.Source
	var unread error
	for i := range to.Plan.Targets {
		up := to.Plan.Targets[i].Data.(*route.Upstream)
		if string(up.Dialect) == d.Name() {
			continue
		}
		if source == nil && unread == nil {
			source, unread = translate.Read(d, asked)
		}
		err := unread
		if err == nil {
			_, err = source.For(translate.Dialect(string(up.Dialect)), translate.Options{Model: up.Model})
		}
		if err != nil {
			out[i] = err.Error()
		}
	}
	return out
}

// question is what a route is asked. What the request itself says is the least.
func (q *ExplainRequest) question(asked *dialect.Request) route.Question {
	const mostBytes = 8 // of a token: no estimate is larger than what the bytes allow
	least, bytes, stream := failover.Needs{}, q.PromptTokens*mostBytes, q.Stream
	if asked != nil {
		least, bytes, stream = needs.Read(asked.Body), max(bytes, int64(len(asked.Body))), stream || asked.Stream
	}
	all := failover.Needs{Input: max(q.PromptTokens, least.Input), Output: max(q.MaxOutput, least.Output),
		Images: q.Images || least.Images, Tools: q.Tools || least.Tools, Schema: q.Schema || least.Schema}
	return route.Question{
		Asked: route.Asked{Stream: stream, Session: q.Session},
		Ask:   failover.Ask{Bytes: bytes, Estimate: func() failover.Needs { return all }},
	}
}

func (a *Admin) explain(w http.ResponseWriter, r *http.Request) error {
	var q ExplainRequest
	const example = `{"model": "coding"}`
	if err := readUpTo(maxExplained, w, r, &q, "model, session, client, stream, prompt_tokens, max_output, tools, images, schema, path and body", example); err != nil {
		return err
	}
	switch {
	case q.Model == "":
		return invalid("model is missing; send an object such as %s", example)
	case q.PromptTokens < 0 || q.MaxOutput < 0:
		return invalid("prompt_tokens and max_output are counts of tokens; send 0 or more")
	}
	asked, d, err := q.asked()
	if err != nil {
		return err
	}
	to, err := a.o.Router().Resolve(catalog.Dialect(d.Name()), q.Model)
	var missing *config.NotFoundError
	if errors.As(err, &missing) {
		return refuse(http.StatusNotFound, "not_found", "%v", missing)
	}
	if err != nil {
		return err
	}
	question := q.question(asked)
	question.Unfit = unfit(to, d, asked)
	if q.Client != "" {
		client := a.config().ClientNamed(q.Client)
		if client == nil {
			return refuse(http.StatusNotFound, "not_found", "no client key has the name %q; give it one under client_keys", shown(q.Client))
		}
		var ok bool
		if question.Barred, ok = to.Narrowed(client, client.MayAsk(q.Model)); !ok {
			return refuse(http.StatusNotFound, "not_found", "%q is not for the client %s: its key allows neither the name nor a target of it", shown(q.Model), client.Name)
		}
	}
	candidates, session := route.Explain(to, question, time.Now())
	nameOneModel(candidates, a.engine.Status())
	writeJSON(w, http.StatusOK, Explanation{Route: to.Name, Session: session, Candidates: candidates})
	return nil
}

// nameOneModel says of candidates whose connection cools down for some models alone that the others
// on it are well.
func nameOneModel(candidates []route.Candidate, st resilience.Status) {
	alone := map[resilience.Key]bool{}
	for _, p := range st.Providers {
		for _, c := range p.Connections {
			for _, model := range c.Models {
				alone[resilience.Key{Provider: p.ID, Connection: c.ID, Model: model}] = true
			}
		}
	}
	for i := range candidates {
		c := &candidates[i]
		if c.Layer != nil && *c.Layer == resilience.LayerConnection && alone[resilience.Key{Provider: c.Provider, Connection: c.Connection, Model: c.Model}] {
			c.Reason = "only this model is out: " + c.Reason
		}
	}
}
