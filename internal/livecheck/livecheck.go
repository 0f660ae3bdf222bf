// Package livecheck asks every connection of a configuration one tiny question, to find out whether
// keys, addresses and models are what their owner believes.
//
// It opens no store and knows no engine, so nothing that it meets takes anything out of service. No
// key is ever in what it returns.
package livecheck

import (
	"context"
	"sync"
	"time"

	"omniroute/classify"
	"omniroute/internal/config"
	"omniroute/internal/credential"
	"omniroute/resilience"
)

// Options bound a check. The zero value means the defaults.
type Options struct {
	// Timeout bounds all calls of one connection together. Defaults to 30s.
	Timeout time.Duration
	// Concurrency is how many connections are asked at once. Defaults to 4.
	Concurrency int
}

// Result is what became of one connection.
type Result struct {
	Provider, Connection string
	// Model is the one that was asked, empty when none was found to ask.
	Model string
	// From says where the model was found: "listed" under models, in a "combo", or "offered" by the
	// provider's own list.
	From string
	// Status is the answer's HTTP status, 0 where there was none.
	Status int
	// Verdict is the classifier's. Scope none is a good answer.
	Verdict resilience.Verdict
	// OK says that the connection works, Text what was found, in words.
	OK   bool
	Text string
	// Took is how long all calls took together.
	Took time.Duration
}

// Run asks every connection and returns a result for each, in the order of the file. It ends early,
// with what it has, when ctx does.
func Run(ctx context.Context, cfg *config.Config, rules *classify.Classifier, o Options) []Result {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 4
	}
	var all []*question
	keyless := credential.Fill(ctx, cfg)
	for _, p := range cfg.Providers {
		client := clientOf(p, cfg.Relay.ConnectTimeout)
		defer client.CloseIdleConnections() //nolint:revive // all of them live to the end of the run
		for _, c := range p.Connections {
			model, from := modelFor(cfg, c)
			all = append(all, &question{
				keyless: keyless[resilience.Key{Provider: p.ID, Connection: c.ID}],
				rules:   rules, client: client, provider: p, connection: c, dialect: p.Endpoints[0].Dialect, timeout: o.Timeout,
				Result: Result{Provider: p.ID, Connection: c.ID, Model: model, From: from},
			})
		}
	}
	places := make(chan struct{}, o.Concurrency)
	var asking sync.WaitGroup
	for _, q := range all {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			began := time.Now()
			q.ask(ctx)
			q.Took = time.Since(began)
		})
	}
	asking.Wait()
	results := make([]Result, len(all))
	for i, q := range all {
		results[i] = q.Result
	}
	return results
}

// modelFor returns the first model that the configuration writes down for a connection.
func modelFor(cfg *config.Config, c *config.Connection) (model, from string) {
	if ms := c.Provider().Models; len(ms) > 0 {
		return ms[0].ID, "listed"
	}
	for _, combo := range cfg.Combos {
		for _, t := range combo.Targets {
			if t.Provider == c.Provider() && (t.Connection == nil || t.Connection == c) {
				return t.Model, "combo"
			}
		}
	}
	return "", ""
}
