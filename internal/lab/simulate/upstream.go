package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"omniroute/internal/route"
	"omniroute/resilience"
)

// provider is an upstream at work.
type provider struct {
	Upstream
	rng     *rand.Rand
	faults  *faults
	recent  []time.Duration // dispatches within the last second, oldest first
	windows map[window]int  // how many requests a limit has taken in a window
}

// window is one window of a limit of one key.
type window struct {
	limit int
	key   resilience.Key
	n     int64
}

// fate is what becomes of an attempt, counted from its dispatch.
type fate struct {
	hangs   bool
	failure *resilience.Verdict
	status  int
	late    bool          // the failure comes at the end, after content
	first   time.Duration // to the failure or the first content
	rest    time.Duration // from there to the end
	missing float64       // the share of the answer that never comes
	header  http.Header   // what is left of limits, nil where nothing is said
}

// billed reports whether the provider takes money for the attempt: not for a refusal, nor for nothing.
func (x *fate) billed() bool { return !x.hangs && (x.failure == nil || x.late) }

// written is the share of the answer that has come after a time.
func (x *fate) written(after time.Duration) float64 {
	share := 1.0
	switch {
	case after < x.first:
		return 0
	case after < x.first+x.rest:
		share = float64(after-x.first) / float64(x.rest)
	}
	return share * (1 - x.missing)
}

// pieces is in how many pieces an answer comes, for faults that strike after some of them.
const pieces = 20

// receive takes in an attempt and draws its fate. The draws are the same whatever becomes of it, so
// that two configurations meet the same luck.
func (p *provider) receive(up *route.Upstream, key resilience.Key, stream bool, output float64, now time.Duration) fate {
	first, speed, refusal, luck := p.draw(p.First), p.draw(p.Speed), p.draw(p.Refusal), p.rng.Float64()
	good := fate{first: seconds(first), rest: seconds(output / max(speed, 0.1))}
	refused, header := p.limited(up, key, stream, now)
	good.header = header
	if refused != nil {
		return p.apply(good, refused, seconds(refusal))
	}
	if p.overloaded(now) {
		return p.apply(good, p.faults.of(p.Overload, up, stream), seconds(refusal))
	}
	for i := range p.Events {
		x := &p.Events[i]
		from, to := time.Duration(x.From), time.Duration(x.To)
		if x.Connection != "" && x.Connection != key.Connection || x.Model != "" && x.Model != key.Model || luck >= *x.Share {
			continue
		}
		begun := now >= from && now < to
		if x.Slow > 0 {
			if begun {
				good.first, good.rest = seconds(good.first.Seconds()*x.Slow), seconds(good.rest.Seconds()*x.Slow)
			}
			continue
		}
		e := p.faults.of(x.Answer, up, stream)
		if begun || e.hangs && now < from && now+good.first >= from {
			return p.apply(good, e, seconds(refusal))
		}
	}
	return good
}

func (p *provider) apply(good fate, e *effect, refusal time.Duration) fate {
	switch {
	case e.hangs:
		return fate{hangs: true}
	case e.failure == nil:
		good.first += e.delay
		good.rest += e.gap * pieces
		return good
	case e.late:
		share := min(float64(e.pieces)/pieces, 1)
		return fate{failure: e.failure, status: e.status, late: true, header: good.header, first: good.first, rest: seconds(good.rest.Seconds()*share) + e.wait, missing: 1 - share}
	}
	return fate{failure: e.failure, status: e.status, header: good.header, first: refusal}
}

// limited counts the attempt in and returns the refusal of the first limit that is used up, and what
// the headers say of the first that is told.
func (p *provider) limited(up *route.Upstream, key resilience.Key, stream bool, now time.Duration) (out *effect, header http.Header) {
	for i := range p.Limits {
		l := &p.Limits[i]
		if l.Connection != "" && l.Connection != key.Connection || l.Model != "" && l.Model != key.Model {
			continue
		}
		at := window{limit: i, key: key, n: int64(now / time.Duration(l.Every))}
		switch l.Per {
		case "connection":
			at.key.Model = ""
		case "provider":
			at.key.Connection, at.key.Model = "", ""
		}
		left := int(l.Requests) - p.windows[at]
		if left > 0 {
			p.windows[at]++
		}
		end := time.Duration(at.n+1) * time.Duration(l.Every)
		if l.Headers && header == nil {
			header = http.Header{ // the IETF's draft, whose windows end as a whole
				"Ratelimit-Policy": {fmt.Sprintf(`"requests";q=%d;w=%d`, l.Requests, int64(time.Duration(l.Every).Seconds()))},
				"Ratelimit":        {fmt.Sprintf(`"requests";r=%d;t=%d`, max(left-1, 0), int64(math.Ceil((end - now).Seconds())))},
			}
		}
		switch {
		case left > 0 || out != nil:
		case l.Answer != "":
			out = p.faults.of(l.Answer, up, stream)
		default:
			out = p.faults.limited(end-now, up, stream)
		}
	}
	return out, header
}

// overloaded counts the attempt in.
func (p *provider) overloaded(now time.Duration) bool {
	if p.Capacity == 0 {
		return false
	}
	old := 0
	for old < len(p.recent) && p.recent[old] <= now-time.Second {
		old++
	}
	p.recent = append(p.recent[old:], now)
	return len(p.recent) > int(p.Capacity)
}

func (p *provider) draw(s Spread) float64 { return drawn(p.rng, s) }

func drawn(rng *rand.Rand, s Spread) float64 { return s.Median * math.Exp(s.Sigma*rng.NormFloat64()) }

func seconds(s float64) time.Duration { return time.Duration(min(s, 1e9) * float64(time.Second)) }
