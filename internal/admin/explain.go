package admin

import (
	"errors"
	"net/http"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
)

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

// question is what a route is asked.
func (q *ExplainRequest) question() route.Question {
	needs := failover.Needs{Input: q.PromptTokens, Output: q.MaxOutput, Images: q.Images, Tools: q.Tools, Schema: q.Schema}
	const mostBytes = 8 // of a token: no estimate is larger than what the bytes allow
	return route.Question{
		Asked: route.Asked{Stream: q.Stream, Session: q.Session},
		Ask:   failover.Ask{Bytes: q.PromptTokens * mostBytes, Estimate: func() failover.Needs { return needs }},
	}
}

func (a *Admin) explain(w http.ResponseWriter, r *http.Request) error {
	var q ExplainRequest
	const example = `{"model": "coding"}`
	if err := read(w, r, &q, "model, session, client, stream, prompt_tokens, max_output, tools, images and schema", example); err != nil {
		return err
	}
	switch {
	case q.Model == "":
		return invalid("model is missing; send an object such as %s", example)
	case q.PromptTokens < 0 || q.MaxOutput < 0:
		return invalid("prompt_tokens and max_output are counts of tokens; send 0 or more")
	}
	to, err := a.o.Router().Resolve(catalog.OpenAI, q.Model)
	var missing *config.NotFoundError
	if errors.As(err, &missing) {
		return refuse(http.StatusNotFound, "not_found", "%v", missing)
	}
	if err != nil {
		return err
	}
	question := q.question()
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
