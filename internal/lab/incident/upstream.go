package incident

import (
	"math"
	"math/rand/v2"
	"time"

	"omniroute/resilience"
)

// upstream is a provider at work.
type upstream struct {
	Provider
	rng    *rand.Rand
	recent []time.Duration // dispatches within the last second, oldest first
}

// fate is what becomes of an attempt, counted from its dispatch.
type fate struct {
	hangs   bool
	failure *resilience.Verdict
	first   time.Duration // to the failure or the first content
	rest    time.Duration // from there to the end
}

// receive takes in an attempt and draws its fate.
func (u *upstream) receive(key resilience.Key, now time.Duration) fate {
	f := fate{first: u.draw(u.First), rest: u.draw(u.Rest)}
	refusal, luck := u.draw(u.Refusal), u.rng.Float64()
	if u.overloaded(now) {
		v := ServerError
		return fate{failure: &v, first: refusal}
	}
	for i := range u.Faults {
		x := &u.Faults[i]
		if x.Connection != "" && x.Connection != key.Connection || x.Model != "" && x.Model != key.Model || luck >= x.Share {
			continue
		}
		begun := now >= x.From && now < x.To
		switch {
		case x.Hang && (begun || now < x.From && now+f.first >= x.From):
			return fate{hangs: true}
		case begun && !x.Hang:
			return fate{failure: &x.Verdict, first: refusal}
		}
	}
	return f
}

// overloaded counts the attempt in.
func (u *upstream) overloaded(now time.Duration) bool {
	if u.Capacity == 0 {
		return false
	}
	old := 0
	for old < len(u.recent) && u.recent[old] <= now-time.Second {
		old++
	}
	u.recent = append(u.recent[old:], now)
	return len(u.recent) > u.Capacity
}

func (u *upstream) draw(s Spread) time.Duration {
	return time.Duration(float64(s.Median) * math.Exp(s.Sigma*u.rng.NormFloat64()))
}
