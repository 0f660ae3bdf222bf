package relay

import (
	"net/http"
	"sync"

	"omniroute/internal/dialect"
	"omniroute/resilience"
)

// maxMakers is how many ids of stored responses are kept at least; twice as many may be there
// for a while.
const maxMakers = 10000

// makers remembers which connection has made a stored response: only that one can read it, go on
// from it or delete it.
type makers struct {
	mu          sync.Mutex
	young, aged map[string]Maker
}

// Maker is where a stored response is, and for whom it was made.
type Maker struct {
	Target resilience.Key
	Caller uint64 // of the request that asked for it
}

func (m *makers) put(id string, by Maker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.young == nil || len(m.young) >= maxMakers {
		m.aged, m.young = m.young, map[string]Maker{}
	}
	m.young[id] = by
}

func (m *makers) get(id string) (Maker, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by, ok := m.young[id]
	if !ok {
		by, ok = m.aged[id]
	}
	return by, ok
}

// Maker returns who has made the stored response of that id, as far as it is known.
func (rl *Relay) Maker(id string) (Maker, bool) { return rl.makers.get(id) }

// maxResponseID bounds the ids that are remembered, in bytes.
const maxResponseID = 256

// remember notes who has made a response that may be asked for again, or has been found to have it.
func (x *exchange) remember(c *call) {
	key := c.attempt.Target.Key()
	if x.Stored != "" && x.r.Method != http.MethodDelete && c.told.model != "" && len(x.Stored) <= maxResponseID {
		if _, known := x.rl.makers.get(x.Stored); !known {
			key.Model = c.told.model // the plan knew none
			x.rl.makers.put(x.Stored, Maker{key, x.Caller})
		}
		return
	}
	if id := c.told.id; c.translation == nil && c.speaks.Name() == "responses" && x.Asked.Operation == dialect.OpGenerate && id != "" && len(id) <= maxResponseID {
		x.rl.makers.put(id, Maker{key, x.Caller})
	}
}
