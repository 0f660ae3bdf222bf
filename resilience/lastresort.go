package resilience

// AcquireLastResort is Acquire for a request that would fail otherwise, since every target is out
// and none will be back in time (law R7): it also admits where an exclusion runs, one request at a
// time. Its success is evidence like any other; its failure, like a late one, may extend a deadline
// by the upstream's own word and raises nothing. It never passes an operator's exclusion, nor a
// quarantine, which rechecks look after.
func (t *Target) AcquireLastResort() (Permit, error) {
	begun := t.engine.seq.Load()
	if t.unknown() {
		t.dom.count()
		return newPermit(t, begun), nil
	}
	return t.engine.admit(t, byLastResort)
}

// overrule turns refusals into leave for one request. It returns false when one of the gates has
// somebody on its way already, or must not be passed.
func (t *Target) overrule(answers *[4]answer, now instant) bool {
	gates := [4]*gate{&t.dom.breaker, &t.conn.cool, &t.cool, &t.lock}
	for i := range answers {
		if answers[i].verdict != refused {
			continue
		}
		if n, _ := gates[i].running(now); n > 0 || gates[i].quarantined {
			return false
		}
		answers[i] = answer{verdict: recheck}
	}
	return true
}
