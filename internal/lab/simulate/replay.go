package simulate

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/outcomes"
	"omniroute/internal/route"
	"omniroute/resilience"
)

const (
	// near is how far in time a recorded attempt may be to say what another one would have met;
	// usual is how far one may be to say at least how fast answers were.
	near  = 30 * time.Second
	usual = 15 * time.Minute
	// maxSpan is how far apart requests may be: beyond it a clock was wrong.
	maxSpan = 5 * 366 * 24 * time.Hour
)

// Recording is what a gateway has recorded, and what it says about the upstreams.
type Recording struct {
	lines      []outcomes.Line
	unreadable int
	start      time.Time
	seen       map[resilience.Key][]sighting // by target, oldest first
}

// sighting is what one recorded attempt met.
type sighting struct {
	at   time.Duration // of its dispatch
	on   string        // the connection
	fate fate
	wait *outcomes.Verdict // of a failure
	ends time.Duration
}

// LoadRecording reads a file that `record` in a configuration has made, and the older half beside it.
func LoadRecording(path string) (*Recording, error) {
	read, err := outcomes.Read(path)
	if err != nil {
		return nil, fmt.Errorf("the recording cannot be read: %w", err)
	}
	lines := read.Lines
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s holds no request yet", path)
	}
	slices.SortStableFunc(lines, func(a, b outcomes.Line) int { return a.At.Compare(b.At) })
	rec := &Recording{lines: lines, unreadable: read.Unreadable, start: lines[0].At, seen: map[resilience.Key][]sighting{}}
	if rec.end() > maxSpan {
		return nil, fmt.Errorf("%s has requests of %s and of %s, so that some clock was wrong; remove the lines with times that cannot be",
			path, lines[0].At.Format(time.DateOnly), lines[len(lines)-1].At.Format(time.DateOnly))
	}
	for i := range lines {
		l := &lines[i]
		for j := range l.Attempts {
			a := &l.Attempts[j]
			if s, ok := sight(l, a); ok {
				s.on = a.Connection
				s.at = l.At.Sub(rec.start) + outcomes.Span(a.After)
				s.ends = s.at + outcomes.Span(a.Took)
				rec.seen[a.Key()] = append(rec.seen[a.Key()], s)
			}
		}
	}
	for _, all := range rec.seen {
		slices.SortStableFunc(all, func(a, b sighting) int { return cmp.Compare(a.at, b.at) })
	}
	return rec, nil
}

// sight tells what an attempt met, and false where it was ended before that was known.
func sight(l *outcomes.Line, a *outcomes.Attempt) (sighting, bool) {
	first, took := outcomes.Span(a.First), outcomes.Span(a.Took)
	s := sighting{fate: fate{first: first, rest: max(took-first, 0), status: a.Status}}
	switch failover.Outcome(a.Outcome) {
	case failover.OutcomeAnswered:
		if !l.Stream {
			s.fate.first, s.fate.rest = took, 0
		}
		return s, true
	case failover.OutcomeFailed:
		if a.Verdict == nil {
			return s, false
		}
		v := a.Verdict.Resilience(0)
		s.wait, s.fate.failure, s.fate.late = a.Verdict, &v, a.First > 0
		if !s.fate.late {
			s.fate.first, s.fate.rest = took, 0
			s.fate.hangs = v.Kind == resilience.KindTimeout
		}
		return s, true
	case failover.OutcomeCanceled:
		return s, a.First > 0 // the client left a good answer
	}
	return s, false
}

// usage is how many tokens prompts and answers had on average.
func (rec *Recording) usage() (prompt, output float64) {
	known := 0.0
	for i := range rec.lines {
		if l := &rec.lines[i]; l.Input > 0 || l.Output > 0 {
			prompt, output, known = prompt+float64(l.Input), output+float64(l.Output), known+1
		}
	}
	known = max(known, 1)
	return prompt / known, output / known
}

// end is when the last recorded request came.
func (rec *Recording) end() time.Duration { return rec.lines[len(rec.lines)-1].At.Sub(rec.start) }

// recorded is an upstream that behaves as it was seen to.
type recorded struct {
	*Recording
	rng     *rand.Rand
	guessed int
}

// receive lets an attempt meet what attempts on the same target met at about that time, else what
// those of its siblings met, where it was the provider's or the model's doing. Where nothing near is
// known, the target is taken for well, and as fast as it was otherwise.
func (r *recorded) receive(_ *route.Upstream, key resilience.Key, stream bool, _ float64, now time.Duration) fate {
	still := func(s *sighting) bool { return !s.passed(now) }
	if s := r.draw(r.seen[key], now, near, still); s != nil {
		return s.met(now, stream)
	}
	var siblings []sighting
	for k, all := range r.seen {
		if k.Provider == key.Provider && k.Model == key.Model && k.Connection != key.Connection {
			siblings = append(siblings, around(all, now, near)...)
		}
	}
	slices.SortStableFunc(siblings, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.ends, b.ends), strings.Compare(a.on, b.on))
	})
	if s := r.draw(siblings, now, near, func(s *sighting) bool { return still(s) && notTheAccounts(s) }); s != nil {
		return s.met(now, stream)
	}
	r.guessed++
	if s := r.draw(r.seen[key], now, usual, good); s != nil {
		return s.met(now, stream)
	}
	return fate{first: 600 * time.Millisecond, rest: 4 * time.Second}
}

// passed reports whether a refusal holds no more, since the wait that it stated has ended.
func (s *sighting) passed(now time.Duration) bool {
	return s.wait != nil && s.wait.Wait > 0 && now > s.ends+outcomes.Span(s.wait.Wait)
}

func good(s *sighting) bool { return s.fate.failure == nil }

// notTheAccounts leaves out what says something of the sibling's own account.
func notTheAccounts(s *sighting) bool {
	return s.fate.failure == nil || s.fate.failure.Scope == resilience.ScopeProvider || s.fate.failure.Scope == resilience.ScopeRequest
}

// met is the sighting as it would have been for an attempt at another time: a wait that was stated
// ends when it did.
func (s *sighting) met(now time.Duration, stream bool) fate {
	f := s.fate
	if s.wait != nil {
		v := s.wait.Resilience(now - s.at)
		f.failure = &v
	}
	if !stream {
		f.first, f.rest, f.late = f.first+f.rest, 0, false
	}
	return f
}

// around returns what was seen within d of a time.
func around(all []sighting, now, d time.Duration) []sighting {
	from, _ := slices.BinarySearchFunc(all, now-d, func(s sighting, t time.Duration) int { return cmp.Compare(s.at, t) })
	to, _ := slices.BinarySearchFunc(all, now+d+1, func(s sighting, t time.Duration) int { return cmp.Compare(s.at, t) })
	return all[from:to]
}

// draw returns the last sighting before now or the first after it that will do, the nearer one the likelier; nil when
// there is none. No others are drawn from: an outage in which hardly anybody asked has many good answers on both sides.
func (r *recorded) draw(all []sighting, now, d time.Duration, will func(*sighting) bool) *sighting {
	all = around(all, now, d)
	next, _ := slices.BinarySearchFunc(all, now, func(s sighting, t time.Duration) int { return cmp.Compare(s.at, t) })
	last := next - 1
	for last >= 0 && !will(&all[last]) {
		last--
	}
	for next < len(all) && !will(&all[next]) {
		next++
	}
	switch {
	case last < 0 && next == len(all):
		return nil
	case last < 0:
		return &all[next]
	case next == len(all):
		return &all[last]
	}
	if since, until := now-all[last].at, all[next].at-now; r.rng.Float64()*float64(since+until) < float64(since) {
		return &all[next]
	}
	return &all[last]
}

// Replay is what was, and what would have been.
type Replay struct {
	Recording string  `json:"recording"`
	Config    string  `json:"config"`
	Was       *Report `json:"was"`
	Would     *Report `json:"would_be"`
	// Guessed is how many attempts of the second went where nothing near in time was recorded.
	Guessed int `json:"guessed"`
	// Unknown counts the requests whose model's name the configuration does not have.
	Unknown int `json:"unknown_models"`
	// Unreadable counts the lines of the recording that were cut off by a crash, or that hold words which
	// only another version knows.
	Unreadable int `json:"unreadable_lines"`
}

// Replay plays the recorded requests against another configuration.
func (rec *Recording) Replay(path, conf string, seed uint64) (*Replay, error) {
	text, err := os.ReadFile(conf)
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	cfg, _, err := config.Parse(conf, text, madeUp)
	if err != nil {
		return nil, fmt.Errorf("the configuration is not good: %w", err)
	}
	f := &File{Title: filepath.Base(path), Seed: seed, Nodes: 1, path: conf, cfg: cfg, Length: Duration(rec.end() + time.Second)}
	out := &Replay{Recording: path, Config: conf, Was: rec.was(f), Unreadable: rec.unreadable}
	up := &recorded{Recording: rec, rng: rand.New(rand.NewPCG(seed, 1))}
	w, err := f.world(func(int, *config.Provider) (upstream, error) { return up, nil })
	if err != nil {
		return nil, err
	}
	prompt, output := rec.usage()
	for i := range rec.lines {
		l := &rec.lines[i]
		if _, err := cfg.ResolveFor(dialectOf(l.Dialect), l.Model); err != nil {
			out.Unknown++
			continue
		}
		w.at(l.At.Sub(rec.start), func() {
			fl := &flight{w: w, n: w.nodes[0], arrived: w.now, stream: l.Stream, prompt: float64(l.Input), output: float64(l.Output)}
			if l.Input == 0 && l.Output == 0 { // it was not answered
				fl.prompt, fl.output = prompt, output
			}
			fl.begin(dialectOf(l.Dialect), l.Model, route.Asked{Stream: l.Stream})
			if l.Status == statusClientGone {
				w.at(w.now+outcomes.Span(l.Took), fl.leave)
			}
		})
	}
	out.Would = w.run()
	out.Guessed = up.guessed
	return out, nil
}

// statusClientGone is what the gateway records of a client that left.
const statusClientGone = 499

// was counts what was recorded, in the same terms.
func (rec *Recording) was(f *File) *Report {
	t := newTally(f)
	for i := range rec.lines {
		l := &rec.lines[i]
		arrived, billed := l.At.Sub(rec.start), false
		for j := range l.Attempts {
			a := &l.Attempts[j]
			t.dispatched(a.Key(), arrived+outcomes.Span(a.After))
			if !billed && (a.First > 0 || a.Outcome == string(failover.OutcomeAnswered)) { // the usage is the request's
				billed = true
				t.spent(a.Key(), arrived+outcomes.Span(a.After), float64(l.Input), float64(l.Output), fruitless(failover.Outcome(a.Outcome)))
			}
			r := failover.Record{Key: a.Key(), At: epoch.Add(arrived + outcomes.Span(a.After)), Outcome: failover.Outcome(a.Outcome), FirstContent: outcomes.Span(a.First)}
			if a.Verdict != nil {
				r.Verdict = a.Verdict.Resilience(0)
			}
			t.attempts([]failover.Record{r})
			if a.First > 0 {
				t.committed(a.Key(), arrived+outcomes.Span(a.After+a.First))
			}
		}
		switch {
		case l.Status == statusClientGone:
			t.left()
		case l.Broke:
			t.brokeOff(arrived, "broke off")
		case l.Status >= 200 && l.Status < 300 && len(l.Attempts) > 0:
			last := l.Attempts[len(l.Attempts)-1]
			for _, a := range l.Attempts {
				if a.First > 0 || a.Outcome == string(failover.OutcomeAnswered) {
					last = a
					break
				}
			}
			t.good(arrived, outcomes.Span(last.After), outcomes.Span(cmp.Or(l.First, l.Took)), last.Provider)
		default:
			t.failed(arrived, fmt.Sprintf("status %d", l.Status))
		}
	}
	return t.report()
}

// WriteText writes the replay for a terminal.
func (r *Replay) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	length := time.Duration(r.Was.LengthMS) * time.Millisecond
	fmt.Fprintf(out, "%s: %s requests in %v\n\n%-22s %14s %14s\n", r.Recording, thousands(r.Was.Requests), length.Round(time.Second), "", "IT WAS", "WOULD BE")
	for _, x := range figures {
		row := Row{Unit: x.unit}
		if x.unit == "$" && x.of(r.Was) == 0 && x.of(r.Would) == 0 { // nobody knows a price
			continue
		}
		fmt.Fprintf(out, "%-22s %14s %14s\n", x.name, row.show(x.of(r.Was)), row.show(x.of(r.Would)))
	}
	if r.Unreadable > 0 {
		fmt.Fprintf(out, "\n%s lines of the recording are left out: cut off by a crash, or written by another version\n", thousands(r.Unreadable))
	}
	if r.Unknown > 0 {
		fmt.Fprintf(out, "\n%s requests are left out: %s does not know what they ask for\n", thousands(r.Unknown), r.Config)
	}
	if r.Guessed > 0 {
		fmt.Fprintf(out, "\n%s of %s attempts would have gone where nothing was recorded within %v; their targets were taken for well\n",
			thousands(r.Guessed), thousands(r.Would.Attempts), near)
	}
	r.Would.writeTargets(out)
	r.Would.writeExclusions(out)
	return out.Flush()
}
