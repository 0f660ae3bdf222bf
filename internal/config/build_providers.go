package config

import (
	"bytes"
	"crypto/x509"
	"net/url"
	"slices"
	"strings"

	"omniroute/classify"
	"omniroute/internal/catalog"
	"omniroute/resilience"
)

func (b *builder) providers(n *node) {
	if n == nil || n.bad {
		return
	}
	connections := 0
	for i := range n.entries {
		e := &n.entries[i]
		if reason := badName(e.key); reason != "" {
			b.errorAt(e.pos, "providers", "%s is no name for a provider: %s", quote(e.key), reason)
			continue
		}
		p := b.provider(e)
		b.cfg.Providers = append(b.cfg.Providers, p)
		b.cfg.providers[p.ID] = p
		connections += len(p.Connections)
	}
	if connections == 0 && len(b.errors) == 0 {
		b.warnf(n, "no connection is left, so every request will be answered 503 no_connection; set the variables of one")
	}
}

func (b *builder) provider(e *entry) *Provider {
	n := e.value
	p := &Provider{ID: e.key, Known: catalog.Lookup(e.key), RateLimitScope: classify.RateLimitScope(e.key), Strategy: RoundRobin}
	if n.bad {
		return p
	}
	if scope := n.get("rate_limit_scope"); scope.ok() {
		p.RateLimitScope, _ = resilience.ParseScope(scope.text)
	}
	if way := n.get("connections_strategy"); way.ok() {
		p.Strategy = Strategy(way.text)
	}
	b.endpoints(e, p)
	b.models(n.get("models"), p)
	b.duration(n.get("first_token_timeout"), &p.firstToken)
	b.duration(n.get("answer_timeout"), &p.answerTimeout)
	p.prefill = prefillWay(n.get("prefill"))
	p.Headers = b.headers(n.get("headers"))
	b.proxy(n.get("proxy"), p)
	b.certificates(n.get("ca_file"), p)
	b.connections(e, p)
	return p
}

// endpoints finds out which dialects are spoken where.
func (b *builder) endpoints(e *entry, p *Provider) {
	n := e.value
	var dialects []catalog.Dialect
	dialect := n.get("dialect")
	switch {
	case dialect.ok() && dialect.shape == shapeList:
		for _, item := range dialect.items {
			d := catalog.Dialect(item.text)
			switch {
			case !item.ok():
			case slices.Contains(dialects, d):
				b.errorf(item, "the dialect stands in the list twice; remove one")
			default:
				dialects = append(dialects, d)
			}
		}
	case dialect.ok():
		dialects = []catalog.Dialect{catalog.Dialect(dialect.text)}
	case p.Known != nil:
		for _, known := range p.Known.Endpoints {
			dialects = append(dialects, known.Dialect)
		}
	default:
		dialects = []catalog.Dialect{catalog.OpenAI}
	}

	base := n.get("base_url")
	if base.ok() {
		p.baseURL = b.baseURL(base)
	}
	missing := false
	for _, d := range dialects {
		end := catalog.Endpoint{Dialect: d, Auth: catalog.DefaultAuth(d)}
		if p.Known != nil {
			if known, ok := p.Known.Endpoint(d); ok {
				end = known
			}
		}
		if p.baseURL != "" {
			end.BaseURL = p.baseURL
		}
		missing = missing || end.BaseURL == ""
		p.Endpoints = append(p.Endpoints, end)
	}
	// A connection may have its own address, so the provider's is missed only where one has not.
	if !missing || base != nil || allHave(n.get("connections"), "base_url") {
		return
	}
	switch {
	case p.Known != nil && p.Known.BaseURLExample != "":
		b.errorAt(e.pos, n.path, "every customer of %s has another address; add yours\n    base_url: %s", p.Known.Title, p.Known.BaseURLExample)
	default:
		var names []string
		for _, known := range catalog.All() {
			names = append(names, known.ID)
		}
		add := "; add"
		if near := didYouMean(p.ID, names); near != "" {
			add = near + " Otherwise add"
		}
		b.errorAt(e.pos, n.path, "the provider is not known by this name, so it needs an address%s\n    base_url: https://HOST/v1", add)
	}
}

func or(text, alternative string) string {
	if text == "" {
		return alternative
	}
	return text
}

func allHave(list *node, key string) bool {
	if !list.ok() || list.shape != shapeList || len(list.items) == 0 {
		return false
	}
	return !slices.ContainsFunc(list.items, func(item *node) bool { return item.get(key) == nil })
}

// baseURL checks an upstream's address and returns it without a trailing slash, "" when it is wrong.
func (b *builder) baseURL(n *node) string {
	text := strings.TrimRight(n.text, "/")
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		b.errorf(n, "this is no address of a service; write one such as https://llm.acme.example/v1")
	case u.User != nil:
		b.errorf(n, "an address must not hold a password; use api_key, or headers")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		b.errorf(n, "an address must not have a ? or #; requests could not be appended to it")
	default:
		for _, tail := range []string{"/chat/completions", "/completions", "/messages", "/responses", "/embeddings", "/models"} {
			if rest, ok := strings.CutSuffix(text, tail); ok {
				b.errorf(n, "the address goes up to and without %s; write %s", tail, rest)
				return ""
			}
		}
		return text
	}
	return ""
}

// price reads what a model costs, nil where the file does not say.
func (b *builder) price(n *node) *catalog.Price {
	if !n.ok() {
		return nil
	}
	var p catalog.Price
	b.number(n.get("input"), &p.Input)
	p.Cached = p.Input
	b.number(n.get("cached_input"), &p.Cached)
	b.number(n.get("output"), &p.Output)
	if cached := n.get("cached_input"); cached.ok() && p.Cached > p.Input {
		b.errorf(cached, "what was cached costs more than what was not; write at most %v, the price of input", p.Input)
	}
	return &p
}

func (b *builder) models(n *node, p *Provider) {
	if !n.ok() {
		return
	}
	for _, item := range n.items {
		if !item.ok() {
			continue
		}
		m, id := Model{}, item
		if item.shape == shapeMap {
			id = item.get("id")
			b.int(item.get("context"), &m.Context)
			b.int(item.get("max_output"), &m.MaxOutput)
			m.Images, m.Tools, m.Schema = yesOrNo(item.get("images")), yesOrNo(item.get("tools")), yesOrNo(item.get("json_schema"))
			m.price = b.price(item.get("price"))
			b.duration(item.get("first_token_timeout"), &m.firstToken)
			b.duration(item.get("answer_timeout"), &m.answerTimeout)
			m.prefill = prefillWay(item.get("prefill"))
		}
		if !id.ok() {
			continue
		}
		m.ID = id.text
		switch {
		case badModel(m.ID):
			b.errorf(id, "a model's name is neither empty nor longer than 256 characters and has no spaces; write it as the provider does")
		case p.Model(m.ID) != nil:
			b.errorf(id, "the model %s is listed twice; remove one", quote(m.ID))
		default:
			p.Models = append(p.Models, m)
		}
	}
}

// yesOrNo reads a truth value, nil where there is none.
func yesOrNo(n *node) *bool {
	if !n.ok() {
		return nil
	}
	yes := n.text == "true"
	return &yes
}

func badModel(name string) bool {
	return name == "" || len(name) > 256 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// ownHeaders are set by the gateway, or belong to one connection between two machines.
var ownHeaders = []string{
	"host", "content-length", "content-type", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer",
	"proxy-authorization", "proxy-authenticate", "proxy-connection", "accept-encoding", "expect",
}

func (b *builder) headers(n *node) (all []Header) {
	if !n.ok() {
		return nil
	}
	seen := map[string]bool{}
	for i := range n.entries {
		e := &n.entries[i]
		name := strings.ToLower(e.key)
		switch {
		case !e.value.ok():
		case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") != "" || name == "":
			b.errorAt(e.pos, n.path, "%s is no name of a header; write letters, digits and dashes", quote(e.key))
		case contains(ownHeaders, name):
			b.errorAt(e.pos, n.path, "the header %s is set by the gateway itself; remove it", e.key)
		case seen[name]:
			b.errorAt(e.pos, n.path, "the header %s is set twice, as case does not matter; remove one", e.key)
		case strings.ContainsFunc(e.value.text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			b.errorf(e.value, "a header's value must be one line of text")
		default:
			seen[name] = true
			all = append(all, Header{e.key, NewSecret(e.value.text)})
		}
	}
	return all
}

func (b *builder) proxy(n *node, p *Provider) {
	if !n.ok() || n.text == "" {
		return
	}
	u, err := url.Parse(n.text)
	if err != nil || u.Hostname() == "" || !contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		b.errorf(n, "this is no proxy; write http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT")
		return
	}
	p.proxy = u
	if secret, ok := u.User.Password(); ok {
		b.src.hide(secret)
	}
}

func (b *builder) certificates(n *node, p *Provider) {
	if !n.ok() || n.text == "" {
		return
	}
	pem, err := b.read(fromDir(b.dir, n.text))
	switch {
	case err != nil:
		b.errorf(n, "%s", fileError(err))
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		b.errorf(n, "the file holds no certificate in PEM form; it must have a -----BEGIN CERTIFICATE----- block")
	default:
		p.CACertificates = bytes.Clone(pem)
	}
}

// badName says what is wrong with the name of a provider or connection, "" when nothing is. They are
// parts of keys in the store and of provider/model.
func badName(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > 64:
		return "it is longer than 64 characters"
	case strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_')
	}):
		return "use letters, digits, dots, dashes and underscores"
	}
	return ""
}
