package torture

import (
	"omniroute/failover"
	"omniroute/resilience"
)

// cause is X1: what an answer says was the matter, of one failure or exclusion.
func cause(k resilience.Kind) failover.Class {
	switch k {
	case resilience.KindRateLimit, resilience.KindQuotaExhausted:
		return failover.ClassLimited
	case resilience.KindTimeout:
		return failover.ClassTimeout
	case resilience.KindMalformedResponse, resilience.KindEmptyResponse:
		return failover.ClassBad
	}
	return failover.ClassOutage
}

// answered holds what a client is told to X1 and X2.
func (f *flight) answered(rep failover.Report) {
	w := f.n.w
	var causes []failover.Class
	for _, a := range rep.Attempts {
		if a.Outcome == failover.OutcomeFailed && a.Verdict.Scope >= resilience.ScopeModel && a.Verdict.Scope <= resilience.ScopeProvider {
			causes = append(causes, cause(a.Verdict.Kind))
		}
	}
	for _, s := range rep.Skipped {
		if s.Unfit || s.Exclusion.Layer == resilience.LayerFit {
			continue // it says nothing of the upstream
		}
		causes = append(causes, cause(s.Exclusion.Kind))
		if again := s.Exclusion.RetryAfter; again > 0 && (rep.RetryAfter <= 0 || rep.RetryAfter > again) {
			w.broke("X2 the client is told the soonest recovery", "request %d is told to come back after %v, and %v may take it after %v", f.number, rep.RetryAfter, s.Key, again)
		}
	}
	want := failover.ClassOutage
	for i, c := range causes {
		if i == 0 {
			want = c
		} else if c != want {
			want = failover.ClassOutage
		}
	}
	if rep.Class != want {
		w.broke("X1 one status per cause", "request %d is answered by class %d, want %d of %v", f.number, rep.Class, want, causes)
	}
}
