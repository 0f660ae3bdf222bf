package failover

import (
	"testing"
	"time"

	"omniroute/resilience"
)

// unable is a model that lacks something, and has heard what it refused.
type unable struct {
	window  int64
	lacks   string
	kind    resilience.Kind
	refused []int64
}

func (u *unable) Window(time.Time) int64                          { return u.window }
func (u *unable) Lacks(*Ask, time.Time) (string, resilience.Kind) { return u.lacks, u.kind }
func (u *unable) Refused(_ *Ask, said int64, _ time.Time) {
	u.refused = append(u.refused, said)
	u.window = said
}
func (u *unable) Took(*Ask, time.Time) {}

var (
	tooLong = func(w int64) *unable {
		return &unable{window: w, lacks: "too long", kind: resilience.KindContextLength}
	}
	blind    = func() *unable { return &unable{lacks: "no images", kind: resilience.KindInvalidRequest} }
	suitable = func() *unable { return new(unable) }
)

// TestFit plays requests over models of which some cannot take them: those are skipped and not asked.
// Where none can, what is known may be wrong: the one that comes nearest is asked, and no other.
func TestFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		models []*unable
		play   string
	}{
		{"a chain with a small model in it", []*unable{suitable(), tooLong(32000), suitable()}, `
			begin    -> dispatch a/1/m
			fail 500 -> dispatch c/1/m
			content  -> commit c/1/m
			end      -> finish`},
		{"an outage is not hidden behind a refusal for length", []*unable{suitable(), tooLong(32000), tooLong(8000)}, `
			begin        -> dispatch a/1/m
			fail 429/60s -> give up: exhausted`},
		{"when none fits the largest is asked", []*unable{tooLong(8000), tooLong(32000), tooLong(16000)}, `
			begin       -> dispatch b/1/m
			fail length -> give up: request`},
		{"a length may be wrong, an ability is not", []*unable{blind(), tooLong(8000), blind()}, `
			begin   -> dispatch b/1/m
			content -> commit b/1/m
			end     -> finish`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, resilience.Policy{})
			p := r.plan(t, Limits{}, "a/1/m", "b/1/m", "c/1/m")
			for i, m := range c.models {
				p.Targets[i].Model = m
			}
			s := &script{t: t, rig: r, req: NewRequest(p, nil, true)}
			s.play(c.play)
			if !s.req.over {
				t.Error("the script ends with its request under way")
			}
		})
	}
}

// TestFitIsTold: what was skipped for what a model lacks is in the report, or with an answer in the
// story, and says why.
func TestFitIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	p := r.plan(t, Limits{}, "a/1/m", "b/1/m")
	p.Targets[0].Model, p.Targets[1].Model = blind(), suitable()
	s := &script{t: t, rig: r, req: NewRequest(p, nil, true)}
	s.play("begin -> dispatch b/1/m")
	passed := s.req.Passed(r.now)
	if len(passed) != 1 || passed[0].Key != key("a/1/m") || passed[0].Layer != resilience.LayerFit || passed[0].Reason != "no images" {
		t.Errorf("passed over: %+v", passed)
	}
	s.play("fail 429/60s -> give up: exhausted")
	rep := s.req.Report(r.now)
	if len(rep.Skipped) != 1 || rep.Skipped[0].Layer != resilience.LayerFit || rep.Class != ClassLimited || rep.RetryAfter != time.Minute {
		t.Errorf("report %+v", rep)
	}
	if x, out, _ := p.Targets[0].Look(&Ask{}, false, r.now); !out || x.Layer != resilience.LayerFit {
		t.Errorf("explained as %+v, %v", x, out)
	}
}

// TestRefusalForLengthTeaches: the model hears of it with what it said, and R6 goes by the new window.
func TestRefusalForLengthTeaches(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	p := r.plan(t, Limits{}, "a/1/m", "b/1/n", "c/1/o")
	models := []*unable{suitable(), {window: 4000}, {window: 9000}}
	for i, m := range models {
		p.Targets[i].Model = m
	}
	req := NewRequest(p, nil, true)
	a := req.Step(Event{Type: Begin}, r.now)
	got := req.Step(Event{Type: Failed, Attempt: a.Attempt.ID, Verdict: verdicts["length"], Window: 8000}, r.now)
	if got.Type != Dispatch || got.Attempt.Target.Key() != key("c/1/o") {
		t.Errorf("goes on to %+v, want the one with the larger window", got)
	}
	if len(models[0].refused) != 1 || models[0].refused[0] != 8000 {
		t.Errorf("the model has heard %v", models[0].refused)
	}
	req.Step(Event{Type: Abandoned}, r.now)
}

// TestUnfitTargetsOpenNoRoom: a gate that opens for a target that cannot take the request lets nobody
// go who waits for another one.
func TestUnfitTargetsOpenNoRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	p := r.plan(t, Limits{}, "a/1/m", "b/1/m")
	p.Targets[0].Model = tooLong(8000)
	s := &script{t: t, rig: r, req: NewRequest(p, nil, true)}
	s.play("other b/1/m 429/5s\nbegin -> room for 10s")
	l, woken := NewLobby(), 0
	if !l.Enter(s.req, 10*time.Second, func(time.Duration) { woken++ }, r.now) {
		t.Fatal("the room is full")
	}
	if let, again := l.Poll(r.now); len(let) != 0 || !again.Equal(r.now.Add(5*time.Second)) {
		t.Errorf("%d are let go, next at %v", len(let), again.Sub(r.now))
	}
	r.now = r.now.Add(5 * time.Second)
	if let, _ := l.Poll(r.now); len(let) != 1 {
		t.Errorf("%d are let go when their target is back", len(let))
	}
	l.Leave(s.req, r.now)
}
