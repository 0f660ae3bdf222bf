// Package fit knows what a model can take: how long a prompt, how long an answer, images, tools, a
// schema for its answer. It starts from what is written down and learns from refusals.
//
// What it says is by estimate: it is a reason to ask another model, never one to refuse a request.
// What is not known counts as possible. It keeps nothing over a restart and reads no clock.
package fit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// Can is what a model is known to take. The zero value says that nothing is known against it.
type Can struct {
	// Window is the context window, MaxOutput the longest answer, in tokens; 0 where it is not known.
	Window, MaxOutput int64
	// NoImages, NoTools and NoSchema: it does not see images, call tools, answer by a JSON schema.
	NoImages, NoTools, NoSchema bool
}

const (
	// learnedLife is how long what a refusal has taught counts.
	learnedLife = time.Hour
	// An estimate is off by a third at times: below that a prompt is let try.
	marginOver, marginUnder = 13, 10
	// leastTold is how long a prompt must be for its refusal to say anything, in tokens.
	leastTold = 256
)

// Model implements failover.Model. The zero value knows nothing; it is safe for concurrent use.
type Model struct {
	can atomic.Pointer[Can]

	learned atomic.Bool // whether a refusal has taught anything
	mu      sync.Mutex
	window  int64 // by the model's own word
	refused int64 // the smallest estimate that was refused
	at      time.Time
}

var _ failover.Model = (*Model)(nil)

// Set says what is written down of the model.
func (m *Model) Set(c Can) { m.can.Store(&c) }

// knows returns what is known now; refused is 0 where no refusal counts.
func (m *Model) knows(now time.Time) (c Can, refused int64) {
	if p := m.can.Load(); p != nil {
		c = *p
	}
	if m.learned.Load() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if now.Sub(m.at) < learnedLife {
			if refused = m.refused; m.window > 0 {
				c.Window = m.window
			}
		}
	}
	return c, refused
}

// Window implements failover.Model.
func (m *Model) Window(now time.Time) int64 {
	c, _ := m.knows(now)
	return c.Window
}

// Lacks implements failover.Model. It reads the request only where a glance at it does not tell.
func (m *Model) Lacks(a *failover.Ask, now time.Time) (string, resilience.Kind) {
	c, refused := m.knows(now)
	if c == (Can{}) && refused == 0 {
		return "", 0
	}
	if c.NoImages || c.NoTools || c.NoSchema || c.MaxOutput > 0 {
		g := a.Glance()
		switch {
		case c.NoImages && g.Images && a.Needs().Images:
			return "it does not see images", resilience.KindInvalidRequest
		case c.NoTools && g.Tools && a.Needs().Tools:
			return "it does not call tools", resilience.KindInvalidRequest
		case c.NoSchema && g.Schema && a.Needs().Schema:
			return "it does not answer by a JSON schema", resilience.KindInvalidRequest
		case c.MaxOutput > 0 && g.Output > c.MaxOutput && a.Needs().Output > c.MaxOutput:
			return fmt.Sprintf("its answers have at most %d tokens, and %d are asked for", c.MaxOutput, a.Needs().Output), resilience.KindInvalidRequest
		}
	}
	// No prompt has more tokens than bytes, and few have more than half as many.
	if c.Window > 0 && a.Bytes > c.Window {
		if n := a.Needs().Input; n*marginUnder > c.Window*marginOver {
			return fmt.Sprintf("the prompt has about %d tokens, and its window %d", n, c.Window), resilience.KindContextLength
		}
	}
	if refused > 0 && a.Bytes >= refused {
		if n := a.Needs().Input; n >= refused {
			return fmt.Sprintf("the prompt has about %d tokens, and it has refused one of %d", n, refused), resilience.KindContextLength
		}
	}
	return "", 0
}

// Refused implements failover.Model.
func (m *Model) Refused(a *failover.Ask, said int64, now time.Time) {
	n := a.Needs().Input
	if n < leastTold || said > 2*n {
		n = 0 // what was too long was the prompt and the answer together, or the upstream talks nonsense
	}
	if n == 0 && said == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.at) >= learnedLife {
		m.window, m.refused = 0, 0
	}
	if said > 0 {
		m.window = said
	}
	if n > 0 && (m.refused == 0 || n < m.refused) {
		m.refused = n
	}
	m.at = now
	m.learned.Store(true)
}

// Took implements failover.Model.
func (m *Model) Took(a *failover.Ask, now time.Time) {
	if !m.learned.Load() {
		return
	}
	if _, refused := m.knows(now); refused == 0 || a.Bytes < refused {
		return
	}
	n := a.Needs().Input
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused > 0 && n >= m.refused {
		m.refused = n + 1
	}
	if m.window > 0 && n*marginUnder > m.window*marginOver {
		m.window = 0
	}
}
