package relay

import (
	"slices"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/seam"
	"omniroute/internal/dialect/sse"
	"omniroute/internal/dialect/translate"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// recovery has an answer that broke off finished by another attempt (law S8): by a model that goes
// on from its beginning, or by one that says it again, byte for byte. There is one in a request at
// most.
type recovery struct {
	x       *exchange
	cut     *call // whose answer broke off
	verdict resilience.Verdict
	text    string // what the client has
	thought bool   // and before that a thought, which no other model goes on from
	source  *translate.Source
	writer  neutral.EventWriter // goes on with the client's stream
	spent   dialect.Usage       // by all attempts so far, as far as they said
	barred  []*failover.Target  // those that did not go on as they were asked to
}

// recoverable reports whether answers to the request may be finished by another attempt.
func (x *exchange) recoverable() bool {
	return x.Route.Recover && x.Asked.Stream && x.Asked.Operation == dialect.OpGenerate && !x.lasting
}

// follow keeps what the client gets. Once the answer is none that can be gone on with, nothing is
// kept for it any more.
func (x *exchange) follow(c *call, ev *sse.Event) {
	if c.words == nil {
		c.follower.Passed(ev)
	}
	if c.follower.Hopeless() {
		x.letGo()
	}
}

// mayGoOn reports whether another attempt may finish the answer of a call that ends with a
// failure, and prepares that.
func (x *exchange) mayGoOn(c *call, v resilience.Verdict) bool {
	if c.follower == nil || v.Scope < resilience.ScopeModel || v.Scope > resilience.ScopeProvider || x.r.Context().Err() != nil {
		return false
	}
	story := &telemetry.Recovery{Outcome: telemetry.NotAttempted, Why: c.follower.Lost()}
	x.story.Recovery = story
	if story.Why != "" {
		return false
	}
	source, err := translate.Read(x.Dialect, x.Asked)
	if err != nil { // it asks for what only one dialect has
		story.Why = err.Error()
		return false
	}
	if c.unsent { // the client need not wait for what it is to have anyway
		c.unsent = false
		if x.out.Flush() != nil {
			return false
		}
	}
	r := &recovery{x: x, cut: c, verdict: v, text: c.follower.Text(), thought: c.follower.Thought(), source: source}
	story.Outcome, story.Bytes = telemetry.NotRecovered, len(r.text)
	if c.words != nil {
		r.writer = c.words.Writer()
	} else {
		r.writer = c.follower.Writer(r.same(c).Context())
	}
	c.follower = nil
	x.recovery = r
	return true
}

// same is the translation of answers from an upstream of the client's own dialect.
func (r *recovery) same(c *call) *translate.Translation {
	return r.source.Same(translate.Options{Model: c.up.Model, Now: r.x.started, ID: r.x.ID})
}

// prepare makes a call that is to finish the answer.
func (r *recovery) prepare(c *call) {
	p, ok := prefills[c.up.Prefill.Way]
	prefix := seam.Prefix(r.text)
	if !ok || r.thought || prefix == "" || slices.Contains(r.barred, c.attempt.Target) {
		return
	}
	if asked, ok := translate.Continue(c.speaks, c.asked, prefix, p); ok {
		c.asked, c.goesOn = asked, true
	}
}

// prefills says what goes with the beginning of an answer.
var prefills = map[catalog.PrefillWay]neutral.Prefill{
	catalog.PrefillPlain:   {},
	catalog.PrefillPrefix:  {Message: `"prefix":true`},
	catalog.PrefillPartial: {Message: `"partial":true`},
	catalog.PrefillFinal:   {Body: `"continue_final_message":true,"add_generation_prompt":false`},
}

// baseURL returns where the call goes.
func (c *call) baseURL() string {
	if c.goesOn && c.up.Prefill.BaseURL != "" {
		return c.up.Prefill.BaseURL
	}
	return c.up.BaseURL
}

// Rules of verdicts on answers that are good in themselves and do not fit to what the client has.
const (
	ruleDeviates = "recover.deviates"
	ruleRefused  = "recover.refused"
)

// failed is the event of the failure of an attempt that was to finish the answer. That a model does
// not go on, or not exactly, is nobody's fault: it can still be asked to say everything again.
func (r *recovery) failed(c *call, v resilience.Verdict) failover.Event {
	if c.stream != nil {
		r.spent = seam.Sum(r.spent, c.stream.Answer().Usage)
	}
	switch atFault := v.Scope == resilience.ScopeRequest || v.Scope == resilience.ScopeClient; {
	case atFault && c.goesOn:
		v = resilience.Verdict{Scope: resilience.ScopeLocal, Kind: v.Kind, Rule: ruleRefused, Evidence: v.Rule}
	case atFault:
		v.Scope = resilience.ScopeRequest // one target has taken the request, so that others may
	}
	ev := failover.Event{Type: failover.Failed, Attempt: c.attempt.ID, Status: c.status, Verdict: v}
	if c.goesOn && (v.Rule == ruleRefused || v.Rule == ruleDeviates) {
		r.barred = append(r.barred, c.attempt.Target)
		ev.Again = true
	}
	return ev
}

// settleRecovery says how an answer ended that broke off once, and looks for an attempt that
// finishes it when it has done so just now.
func (x *exchange) settleRecovery(c *call, ev failover.Event) *call {
	r := x.recovery
	if r.cut != c {
		r.spent = seam.Sum(r.spent, c.told.usage)
		x.story.Usage = &r.spent
		if c.outcome == nil {
			x.story.Recovery.Outcome = telemetry.Recovered
		}
		x.handle.Do(ev)
		return nil
	}
	r.spent = c.told.usage
	x.mu.Lock()
	x.driver = nil // whoever drove is done
	x.mu.Unlock()
	ev.Resume = true
	act := x.drive(x.do(ev))
	if act.Type == failover.Commit {
		return x.call(act.Attempt.ID)
	}
	x.story.Usage = &r.spent
	switch {
	case act.Type == failover.GiveUp:
		x.failLate(r.verdict)
	case x.shuttingDown():
		x.failLate(resilience.Verdict{Scope: resilience.ScopeLocal, Kind: resilience.KindCanceled, Rule: ruleShutdown})
	default:
		x.left()
	}
	return nil
}

// failLate ends the client's stream after the attempt that began it is over, and nothing else
// bounds how long the client may take to read that.
func (x *exchange) failLate(v resilience.Verdict) {
	x.hurryWriter()
	x.fail(x.recovery.cut, v)
	x.calmWriter()
}

// goOn passes on what finishes the answer.
func (x *exchange) goOn(c *call) {
	x.letGo()
	x.story.Recovery.Way = "restart"
	if c.goesOn {
		x.story.Recovery.Way = "prefill"
	}
	c.streams()
	x.pump(c)
}

// unfitting is the verdict on an answer that does not fit to what the client has.
func unfitting() resilience.Verdict {
	return resilience.Verdict{Scope: resilience.ScopeLocal, Kind: resilience.KindMalformedResponse, Rule: ruleDeviates,
		Evidence: "the answer does not go on exactly where the client's breaks off"}
}
