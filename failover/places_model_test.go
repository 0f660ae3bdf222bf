package failover

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniroute/resilience"
)

// TestPlacesAreNeverLost drives requests at random over two connections with few places, with every
// kind of event at any time, and counts: as many places are used as attempts run, never more than
// there are, and none when all is over.
func TestPlacesAreNeverLost(t *testing.T) {
	t.Parallel()
	type flight struct {
		req     *Request
		running []*Attempt
		queued  bool
		pausing bool
		called  []Event
	}
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, resilience.Policy{})
		p := r.plan(t, Limits{QueueDepth: rapid.IntRange(1, 4).Draw(t, "depth"), QueueWait: 20 * time.Second}, "a/1/m", "a/2/m", "b/1/m")
		limits := make([]int, len(p.Targets))
		for i := range p.Targets {
			limits[i] = rapid.IntRange(1, 2).Draw(t, "limit")
			p.Targets[i].Places = new(Places)
			p.Targets[i].Places.Limit(limits[i])
		}
		var all []*flight
		var do func(*flight, Event)
		do = func(f *flight, ev Event) {
			a := f.req.Step(ev, r.now)
			for _, c := range a.Cancel {
				f.running = slices.DeleteFunc(f.running, func(x *Attempt) bool { return x == c })
			}
			if a.Type != Continue {
				f.queued, f.pausing = false, false
			}
			switch a.Type {
			case Dispatch:
				f.running = append(f.running, a.Attempt)
			case Pause, Enter:
				f.pausing = true
			case Queue:
				f.queued = true
				if !f.req.Line(func() { f.called = append(f.called, Event{Type: Called}) }) {
					do(f, Event{Type: RoomFull})
				}
			}
		}
		end := func(f *flight, a *Attempt) {
			f.running = slices.DeleteFunc(f.running, func(x *Attempt) bool { return x == a })
		}
		some := func(t *rapid.T, ok func(*flight) bool) *flight {
			var fit []*flight
			for _, f := range all {
				if !f.req.over && ok(f) {
					fit = append(fit, f)
				}
			}
			if len(fit) == 0 {
				t.Skip("there is none")
			}
			return rapid.SampledFrom(fit).Draw(t, "request")
		}
		runs := func(f *flight) bool { return len(f.running) > 0 && f.req.committed == nil }
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				f := &flight{req: NewRequest(p, nil, true).For(Ask{Caller: rapid.Uint64Range(1, 3).Draw(t, "caller")})}
				all = append(all, f)
				do(f, Event{Type: Begin})
			},
			"content": func(t *rapid.T) {
				f := some(t, runs)
				do(f, Event{Type: Content, Attempt: rapid.SampledFrom(f.running).Draw(t, "attempt").ID})
			},
			"fail": func(t *rapid.T) {
				f := some(t, runs)
				a := rapid.SampledFrom(f.running).Draw(t, "attempt")
				end(f, a)
				name := rapid.SampledFrom([]string{"500", "429", "400", "length"}).Draw(t, "how")
				do(f, Event{Type: Failed, Attempt: a.ID, Verdict: verdicts[name]})
			},
			"suspect": func(t *rapid.T) {
				f := some(t, runs)
				do(f, Event{Type: Suspect, Attempt: f.running[0].ID})
			},
			"end": func(t *rapid.T) {
				f := some(t, func(f *flight) bool { return f.req.committed != nil })
				a := f.req.committed
				end(f, a)
				do(f, Event{Type: Ended, Attempt: a.ID, Verdict: verdicts[rapid.SampledFrom([]string{"ok", "500"}).Draw(t, "how")]})
			},
			"called": func(t *rapid.T) {
				f := some(t, func(f *flight) bool { return len(f.called) > 0 })
				ev := f.called[0]
				f.called = f.called[1:]
				do(f, ev)
			},
			"woken": func(t *rapid.T) {
				f := some(t, func(f *flight) bool { return f.queued || f.pausing })
				r.now = r.now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
				do(f, Event{Type: Woken, Waited: 100 * time.Millisecond})
			},
			"abandon": func(t *rapid.T) {
				f := some(t, func(*flight) bool { return true })
				do(f, Event{Type: Abandoned})
				f.running = nil
			},
			"late": func(t *rapid.T) {
				f := some(t, func(f *flight) bool { return f.req.committed == nil })
				do(f, Event{Type: TimedOut})
				f.running = nil
			},
			"": func(t *rapid.T) {
				for i := range p.Targets {
					places := p.Targets[i].Places
					n := 0
					for _, f := range all {
						for _, a := range f.running {
							if a.index == i {
								n++
							}
						}
						// A place that was given and not taken up yet is used too.
						if f.req.line != nil && f.req.line.got.Load() == places {
							n++
						}
					}
					if places.Used() != n || n > limits[i] {
						t.Fatalf("%d places of %d are used on %s, %d by attempts", places.Used(), limits[i], p.Targets[i].Key(), n)
					}
				}
			},
		})
		for _, f := range all {
			do(f, Event{Type: Abandoned})
		}
		for i := range p.Targets {
			if n, w := p.Targets[i].Places.Used(), p.Targets[i].Places.Waiting(); n+w != 0 {
				t.Fatalf("%d places used and %d requests in line when all is over", n, w)
			}
		}
	})
}
