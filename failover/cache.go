package failover

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"omniroute/resilience"
)

// plansKept bounds what is remembered of the lists of targets that Run was called with.
const plansKept = 1000

// planCache keeps the plans of Run, so that calls with the same targets share what was learned of
// how fast they answer.
type planCache struct {
	mu   sync.Mutex
	kept map[planID]*Plan
}

type planID struct {
	targets            string
	limits             Limits
	hedge              Hedge
	firstToken, answer time.Duration
}

func (c *planCache) get(e *resilience.Engine, places *PlaceSet, keys []resilience.Key, o Options) (*Plan, error) {
	var name strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&name, "%q/%q/%q,", k.Provider, k.Connection, k.Model)
	}
	id := planID{name.String(), o.Limits, o.Hedge, o.FirstToken, o.Answer}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.kept[id]; p != nil {
		return p, nil
	}
	p, err := planOf(e, places, keys, o)
	if err != nil {
		return nil, err
	}
	p.Name = id.targets
	if len(c.kept) >= plansKept || c.kept == nil {
		c.kept = map[planID]*Plan{}
	}
	c.kept[id] = p
	return p, nil
}

// forget makes plans anew from now on.
func (c *planCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = nil
}

func planOf(e *resilience.Engine, places *PlaceSet, keys []resilience.Key, o Options) (*Plan, error) {
	p := Plan{Name: "Run", Limits: o.Limits, Hedge: o.Hedge, Ordered: true}
	type model struct{ provider, model string }
	streamed, whole := map[model]*Latency{}, map[model]*Latency{}
	var models []model
	for i, k := range keys {
		entry := 0
		if i > 0 {
			entry = p.Targets[i-1].Entry
			if k.Provider != keys[i-1].Provider || k.Model != keys[i-1].Model {
				entry++
			}
		}
		m := model{k.Provider, k.Model}
		if !slices.Contains(models, m) {
			models = append(models, m)
			streamed[m], whole[m] = new(Latency), new(Latency)
		}
		p.Targets = append(p.Targets, Target{
			Target: e.Target(k), Entry: entry, FirstToken: o.FirstToken, Answer: o.Answer,
			Streamed: streamed[m], Whole: whole[m], Places: places.find(k),
		})
	}
	return NewPlan(p)
}
