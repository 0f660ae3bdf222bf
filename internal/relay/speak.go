package relay

import (
	"bytes"
	"errors"
	"net/http"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/openai"
	"omniroute/internal/dialect/sse"
	"omniroute/internal/dialect/translate"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// speech is how the request is put to the targets of one dialect and model.
type speech struct {
	dialect catalog.Dialect
	model   string
	made    *translate.Translation
	err     error // why the dialect cannot express the request
}

// prepare translates the request for the targets that speak another dialect than the client, and
// takes those that cannot take it out of the request: they are skipped, and are no attempts. When
// none is left, the error says why.
func (x *exchange) prepare() error {
	x.withoutForeign()
	if !x.choosy() {
		return nil
	}
	var source *translate.Source
	var unread, first error
	fit := false
	for i := range x.Route.Plan.Targets {
		t := &x.Route.Plan.Targets[i]
		up := t.Data.(*route.Upstream)
		if x.Barred != nil && x.Barred[i] {
			continue
		}
		if x.Pinned != nil && t.Key() != *x.Pinned {
			x.handle.Bar(i)
			continue
		}
		if string(up.Dialect) == x.Dialect.Name() {
			fit = true
			continue
		}
		if source == nil && unread == nil {
			// What we cannot read may still be what a target of the client's own dialect can.
			source, unread = translate.Read(x.Dialect, x.Asked)
		}
		err := unread
		if err == nil {
			err = x.translate(source, up)
		}
		if err == nil {
			fit = true
			continue
		}
		if first == nil {
			first = err
		}
		x.handle.Bar(i)
		x.unfit = append(x.unfit, failover.Skip{Key: t.Key(), Unfit: true, Exclusion: resilience.Exclusion{Reason: err.Error()}})
	}
	if !fit {
		return first
	}
	return nil
}

// choosy reports whether there may be targets that cannot take the request as it is.
func (x *exchange) choosy() bool {
	if x.Pinned != nil {
		return true
	}
	for i := range x.Route.Plan.Targets {
		if string(x.Route.Plan.Targets[i].Data.(*route.Upstream).Dialect) != x.Dialect.Name() {
			return true
		}
	}
	return false
}

// translate puts the request into the dialect of a target, once for each dialect and model.
func (x *exchange) translate(source *translate.Source, up *route.Upstream) error {
	if s := x.speech(up); s != nil {
		return s.err
	}
	s := speech{dialect: up.Dialect, model: up.Model}
	s.made, s.err = source.For(translate.Dialect(string(up.Dialect)), translate.Options{Model: up.Model, Now: x.started, ID: x.ID})
	x.speeches = append(x.speeches, s)
	return s.err
}

func (x *exchange) speech(up *route.Upstream) *speech {
	for i := range x.speeches {
		if s := &x.speeches[i]; s.dialect == up.Dialect && s.model == up.Model {
			return s
		}
	}
	return nil
}

// withoutForeign takes thoughts of other dialects' upstreams from a request that passes through:
// an earlier turn may have been answered by one.
func (x *exchange) withoutForeign() {
	if x.Dialect.Name() == (openai.Dialect{}).Name() || !translate.Foreign(x.Asked.Body) {
		return
	}
	clean := translate.WithoutForeign(x.Dialect, x.Asked.Body)
	if len(clean) == len(x.Asked.Body) {
		return
	}
	if asked, err := x.Dialect.ReadRequest(x.Asked.Path, clean); err == nil {
		x.passed = asked
	}
}

// speak makes the call ready to speak its target's dialect.
func (c *call) speak() {
	x := c.x
	c.speaks, c.asked = x.Dialect, x.Asked
	if string(c.up.Dialect) == x.Dialect.Name() {
		if x.passed != nil {
			c.asked = x.passed
		}
		c.framer, _ = x.Dialect.(dialect.Framer)
		return
	}
	c.translation = x.speech(c.up).made.Again()
	c.speaks, c.asked = translate.Dialect(string(c.up.Dialect)), c.translation.Upstream()
}

// inClientsWords puts a whole answer into the client's dialect.
func (c *call) inClientsWords() error {
	switch {
	case c.x.Asked.Stream && c.asked.Operation == dialect.OpGenerate:
		return c.asStream()
	case c.translation != nil:
		out, err := c.translation.Answer(c.whole.B)
		if err != nil {
			return err
		}
		c.whole.B = append(c.whole.B[:0], out...)
	case c.asked.Operation == dialect.OpEmbed && c.speaks.Name() == (openai.Dialect{}).Name():
		if out := translate.FitEmbeddings(c.asked, c.whole.B); !bytes.Equal(out, c.whole.B) {
			c.whole.B = append(c.whole.B[:0], out...)
		}
	}
	return nil
}

// hear keeps what an event up to the first content is to a client of another dialect.
func (c *call) hear(ev *sse.Event) {
	switch {
	case c.words != nil:
		c.translated = append(c.translated, c.words.Next(ev)...)
	case c.follower != nil:
		c.follower.Passed(ev)
	}
}

// frame makes good what an upstream of the client's own dialect has left out around an event.
func (c *call) frame(ev *sse.Event) {
	if c.framer != nil {
		c.framer.Frame(ev)
	}
}

// passFirst passes on what was held back up to the first content.
func (x *exchange) passFirst(c *call) bool {
	var ok bool
	if c.words != nil {
		ok = x.pass(c, c.translated)
	} else {
		ok = x.pass(c, c.held.B) && x.pass(c, c.first)
	}
	c.held.Release()
	c.held, c.first, c.translated = nil, nil, nil
	return ok
}

// errorEvent returns what ends the client's stream after a failure.
func (c *call) errorEvent(r *dialect.ErrorReport) []byte {
	if c.words != nil {
		return c.words.ErrorEvent(r)
	}
	if f, ok := c.stream.(dialect.Failer); ok {
		return f.ErrorEvent(r)
	}
	return c.x.Dialect.ErrorEvent(r)
}

// refuse answers a request that no target can take.
func (x *exchange) refuse(err error) {
	out := &dialect.ErrorReport{Status: http.StatusBadRequest, Message: err.Error()}
	if e, ok := errors.AsType[*dialect.RequestError](err); ok {
		out = e.Report()
	}
	if e, ok := errors.AsType[*neutral.UnsupportedError](err); ok {
		out.Param, out.Code = e.Field, "unsupported_parameter"
		if x.Asked.Operation == dialect.OpCount { // clients that hear this count by themselves
			out.Status = http.StatusNotFound
		}
	}
	out.RequestID = x.ID
	x.skipUnfit(out)
	x.story.Status, x.story.Code, x.story.Skipped = out.StatusCode(), out.Code, x.unfit
	WriteError(x.w, x.Dialect, out, false)
}

// skipUnfit reports the targets that could not take the request.
func (x *exchange) skipUnfit(out *dialect.ErrorReport) {
	for _, s := range x.unfit {
		out.Skipped = append(out.Skipped, dialect.Skipped{Key: s.Key, Kind: resilience.KindInvalidRequest})
	}
}
