// Package translate carries one attempt's request and answer between two dialects, over the
// neutral form that both of them read and write. It is pure: the same request and answer become
// the same bytes. It judges nothing; the upstream's own dialect does that with the upstream's
// own events, so that a relay has one set of rules.
package translate

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/anthropic"
	"omniroute/internal/dialect/gemini"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/openai"
	"omniroute/internal/dialect/responses"
)

var codecs = []neutral.Codec{openai.Dialect{}, responses.Dialect{}, anthropic.Dialect{}, gemini.Dialect{}}

// Dialect returns the dialect of a name in the config, nil when there is none.
func Dialect(name string) dialect.Dialect {
	if c := codecOf(name); c != nil {
		return c
	}
	return nil
}

func codecOf(name string) neutral.Codec {
	for _, c := range codecs {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// Options say what a translation cannot know from the request.
type Options struct {
	// Model is what the upstream is asked for.
	Model string
	// Now is the time of the request, for dialects that tell it to clients.
	Now time.Time
	// ID is unique to the request. Ids that an upstream leaves out are made from it.
	ID string
}

// Source is a client's request, read once for the targets of other dialects. It does not point
// into the request's body. It is safe for use by several goroutines.
type Source struct {
	from    neutral.Codec
	asked   *dialect.Request
	request *neutral.Request // of OpGenerate and OpCount
}

// Read reads a client's request. The error is a *dialect.RequestError, or a
// *neutral.UnsupportedError for one that no other dialect can express.
func Read(from dialect.Dialect, asked *dialect.Request) (*Source, error) {
	s := &Source{from: codecOf(from.Name()), asked: asked}
	if s.from == nil {
		return nil, fmt.Errorf("translate: no translation from %s", from.Name())
	}
	switch asked.Operation {
	case dialect.OpGenerate, dialect.OpCount:
		request, err := s.from.ReadNeutral(asked)
		if err != nil {
			return nil, err
		}
		if len(request.Native) > 0 {
			return nil, &request.Native[0]
		}
		if len(request.Turns)+len(request.System) == 0 {
			return nil, inWordsOf(s.from, neutral.Unsupported("messages", "has no message"))
		}
		request.Stop = slices.DeleteFunc(request.Stop, func(stop string) bool { return stop == "" }) // some APIs refuse it
		request.Turns = neutral.Paired(neutral.Identified(request.Turns))
		s.request = request
	case dialect.OpEmbed:
		s.request = &neutral.Request{Operation: dialect.OpEmbed}
	default:
		return nil, neutral.Unsupported("model", "is served by a provider of another dialect, which does not have %s", asked.Path)
	}
	return s, nil
}

// Translation is one request in the dialect of one upstream. It serves one attempt; Again makes
// one for the next.
type Translation struct {
	from, to neutral.Codec
	upstream *dialect.Request // as the upstream gets it
	out      *neutral.Outgoing
	names    map[string]string // the client's names of tools by ours, where those differ
	context  neutral.Context
	embed    *embedding
}

// For translates the request for an upstream. The error is a *neutral.UnsupportedError when the
// upstream's dialect cannot express it: then this target is to be skipped, for this request.
func (s *Source) For(to dialect.Dialect, o Options) (*Translation, error) {
	t := &Translation{from: s.from, to: codecOf(to.Name())}
	if t.to == nil || t.from == t.to {
		return nil, fmt.Errorf("translate: no translation from %s to %s", t.from.Name(), to.Name())
	}
	request := *s.request
	request.Model = o.Model
	t.context = neutral.Context{Request: &request, Model: o.Model, Now: o.Now, ID: o.ID}
	var err error
	if s.asked.Operation == dialect.OpEmbed {
		t.embed, t.out, err = newEmbedding(t.from, t.to, s.asked, o.Model)
	} else {
		t.names = rename(&request, t.to.ToolNames())
		t.out, err = t.to.WriteRequest(&request)
	}
	if err != nil {
		return nil, inWordsOf(t.from, err)
	}
	t.context.Request = request.Asked() // the conversation is in what goes out, and is not kept twice
	t.upstream = &dialect.Request{Operation: s.asked.Operation, Path: t.out.Path, Body: t.out.Body, Model: o.Model,
		Stream: s.asked.Stream, IncludeUsage: true}
	return t, nil
}

// Same returns the translation into the client's own dialect: the request is the client's as it
// came, and only answers are put into other words.
func (s *Source) Same(o Options) *Translation {
	request := s.request.Asked()
	request.Model = o.Model
	request.Output = neutral.Output{} // nothing was done for the sake of it
	return &Translation{from: s.from, to: s.from, upstream: s.asked, context: neutral.Context{Request: request, Model: o.Model, Now: o.Now, ID: o.ID}}
}

// Context returns what the writer of the client's stream works with.
func (t *Translation) Context() *neutral.Context { return &t.context }

// New is Read and For in one.
func New(from, to dialect.Dialect, asked *dialect.Request, o Options) (*Translation, error) {
	s, err := Read(from, asked)
	if err != nil {
		return nil, err
	}
	return s.For(to, o)
}

// Again returns the translation for another attempt.
func (t *Translation) Again() *Translation {
	again := *t
	again.context = neutral.Context{Request: t.context.Request, Model: t.context.Model, Now: t.context.Now, ID: t.context.ID}
	return &again
}

// Asked lets go of the request, after which only the answer is left to be translated.
func (t *Translation) Asked() { t.upstream, t.out = nil, nil }

// Path returns the path below the provider's base URL, with query.
func (t *Translation) Path() string { return t.out.Path }

// Body returns the upstream's request.
func (t *Translation) Body() []byte { return t.out.Body }

// Header returns headers that go with the body, in pairs of canonical name and value.
func (t *Translation) Header() [][2]string { return t.out.Header }

// Upstream returns the request as the upstream gets it, for its dialect's judgement of the answer.
func (t *Translation) Upstream() *dialect.Request { return t.upstream }

// Answer returns a complete answer of the upstream in the client's dialect. The error means that
// the body is not the answer that was asked for, although the upstream's dialect took it for one.
func (t *Translation) Answer(body []byte) ([]byte, error) {
	if t.embed != nil {
		return t.embed.answer(trim(body), t.context.Model)
	}
	a, err := t.read(body)
	if err != nil {
		return nil, err
	}
	return t.from.WriteAnswer(&t.context, a), nil
}

func trim(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
}

// read reads a complete answer of the upstream, with the client's names of its tools.
func (t *Translation) read(body []byte) (*neutral.Answer, error) {
	a, ok := t.to.ReadAnswer(&t.context, trim(body))
	if !ok {
		return nil, fmt.Errorf("the answer is not one of the %s dialect", t.to.Name())
	}
	for i := range a.Parts {
		if p := &a.Parts[i]; p.Kind == neutral.PartCall {
			t.own(&p.Call.Name, &p.Call.Custom)
		}
	}
	return a, nil
}

// own gives a call of the upstream's answer the client's name of its tool.
func (t *Translation) own(name *string, custom *bool) {
	*custom = t.context.Request.Custom(*name)
	*name = t.clientName(*name)
}

func (t *Translation) clientName(name string) string {
	if own, ok := t.names[name]; ok {
		return own
	}
	return name
}

// rename gives the tools of a request names that the rule allows, in copies of its lists, and returns the old names by the new ones, nil
// when all could stay.
func rename(r *neutral.Request, rule neutral.NameRule) map[string]string {
	fits := true
	taken := map[string]bool{}
	for i := range r.Tools {
		n := r.Tools[i].Name
		fits = fits && rule.Fits(n)
		taken[n] = true
	}
	for _, t := range r.Turns { // tools of earlier turns may be gone
		for i := range t.Parts {
			if p := &t.Parts[i]; p.Kind == neutral.PartCall {
				fits = fits && rule.Fits(p.Call.Name)
			}
		}
	}
	if fits {
		return nil
	}
	old, fresh := map[string]string{}, map[string]string{}
	name := func(n string) string {
		if rule.Fits(n) || n == "" {
			return n
		}
		if f, ok := fresh[n]; ok {
			return f
		}
		f := rule.Fit(n, taken)
		taken[f], fresh[n], old[f] = true, f, n
		return f
	}
	r.Tools, r.Choice.Names, r.Turns = slices.Clone(r.Tools), slices.Clone(r.Choice.Names), slices.Clone(r.Turns)
	for i := range r.Tools {
		r.Tools[i].Name = name(r.Tools[i].Name)
	}
	for i, n := range r.Choice.Names {
		r.Choice.Names[i] = name(n)
	}
	for k := range r.Turns {
		t := &r.Turns[k]
		t.Parts = slices.Clone(t.Parts)
		for i := range t.Parts {
			switch p := &t.Parts[i]; p.Kind {
			case neutral.PartCall:
				p.Call.Name = name(p.Call.Name)
			case neutral.PartResult:
				p.Result.Name = name(p.Result.Name)
			}
		}
	}
	return old
}
