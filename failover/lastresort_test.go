package failover

import (
	"testing"
	"time"

	"omniroute/resilience"
)

// TestR7LastResortOfARequest plays requests that would fail since everything is out: the target
// that will be back soonest is tried once, unless somebody waits for it or has just tried it.
func TestR7LastResortOfARequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before, play string }{
		{"the soonest, once", "other a/1/m 429/60s\nother b/1/m 429/40s", `
			begin    -> dispatch b/1/m as a probe
			fail 429 -> give up: exhausted`},
		{"its answer is the answer", "other a/1/m 429/60s\nother b/1/m 429/40s", `
			begin   -> dispatch b/1/m as a probe
			content -> commit b/1/m
			end     -> finish`},
		{"what recovers in time is waited for", "other a/1/m 429/60s\nother b/1/m 429/9s", `
			begin    -> room for 10s
			woken 9s -> dispatch b/1/m as a probe
			content  -> commit b/1/m
			end      -> finish`},
		{"a quarantine is passed over", "other a/1/m 429/60s\nrevoke b/1/m", `
			begin   -> dispatch a/1/m as a probe
			content -> commit a/1/m
			end     -> finish`},
		{"what this request has tried is not tried again", "other a/1/m 429/60s", `
			begin        -> dispatch b/1/m
			fail 429/60s -> dispatch a/1/m as a probe
			fail 500     -> give up: exhausted`},
		{"while another one tries, nothing is sent", "other a/1/m 429/60s\nrevoke b/1/m\ndesperate a/1/m", `
			begin -> give up: exhausted`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, resilience.Policy{})
			p := r.plan(t, Limits{}, "a/1/m", "b/1/m")
			p.LastResort = true
			s := &script{t: t, rig: r, req: NewRequest(p, nil, true)}
			s.play(c.before)
			s.play(c.play)
			if !s.req.over {
				t.Error("the script ends with its request under way")
			}
		})
	}
}

// TestWithoutLastResort: it is off by default.
func TestWithoutLastResort(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	s := &script{t: t, rig: r, req: NewRequest(r.plan(t, Limits{}, "a/1/m"), nil, true)}
	s.play("other a/1/m 429/60s\nbegin -> give up: exhausted")
}

// TestLastResortIsToldApart: the story of a request says which attempt was one.
func TestLastResortIsToldApart(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	p := r.plan(t, Limits{}, "a/1/m")
	p.LastResort = true
	s := &script{t: t, rig: r, req: NewRequest(p, nil, true)}
	s.play("other a/1/m 429/60s\nbegin -> dispatch a/1/m as a probe")
	if rec := s.req.Records(); len(rec) != 1 || !rec[0].LastResort || !rec[0].Probe {
		t.Errorf("%+v", rec)
	}
	r.now = r.now.Add(time.Second)
	s.play("content -> commit a/1/m\nend -> finish")
	if _, out := p.Targets[0].Check(); out {
		t.Error("an answer does not clear what it refutes")
	}
}
