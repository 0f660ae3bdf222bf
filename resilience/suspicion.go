package resilience

// Suspected reports whether the target's breaker was opened by attempts that wait too long (law
// R9) and has not closed since: then whoever waits should start somewhere else too.
func (t *Target) Suspected() bool {
	if (t.word.Load()&bitEvicted | t.dom.word.Load()&bitGated) == 0 {
		return false
	}
	e := t.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peek(t).dom.breaker.suspected
}

// LocalOutage is Engine.LocalOutage for one who holds only the target.
func (t *Target) LocalOutage() bool { return t.engine.LocalOutage() }
