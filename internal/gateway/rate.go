package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/internal/config"
	"omniroute/internal/dialect"
)

// rates hold what each client key has used of its rate. They belong to the key: a reload keeps them. They are safe
// for concurrent use.
type rates struct {
	begin time.Time
	mu    sync.Mutex
	kept  map[config.ClientKey]*meter
}

// meter is one key's bucket: when it would be full again, as time since the beginning. That one number is all there is.
type meter struct{ full atomic.Int64 }

// take counts a request at the time now, or says how long until there is room for one. A key that has been silent may
// send all of its requests at once; they come back one by one over the rate's time.
func (m *meter) take(r config.Rate, now time.Duration) (wait time.Duration) {
	each := max(r.Per/time.Duration(r.Requests), 1)
	for {
		old := m.full.Load()
		full := max(time.Duration(old), now) + each
		if wait := full - now - r.Per; wait > 0 {
			return wait
		}
		if m.full.CompareAndSwap(old, int64(full)) {
			return 0
		}
	}
}

func (r *rates) of(k config.ClientKey) *meter {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.kept[k]
	if m == nil {
		if r.kept == nil {
			r.kept = map[config.ClientKey]*meter{}
		}
		m = new(meter)
		r.kept[k] = m
	}
	return m
}

// overRate returns the answer to a request for which its key has no room left, nil where it has.
func (g *Gateway) overRate(r *http.Request) *dialect.ErrorReport {
	cfg := g.o.Router().Config()
	if g.o.Trusted || r.Method != http.MethodPost || !slices.ContainsFunc(cfg.ClientKeys, (*config.Client).Rated) {
		return nil
	}
	c, _ := cfg.Client(presentedKey(r))
	if !c.Rated() {
		return nil
	}
	wait := g.rates.of(c.ClientKey).take(c.Rate, time.Since(g.rates.begin))
	if wait == 0 {
		return nil
	}
	return &dialect.ErrorReport{Code: dialect.CodeClientRateLimited, RetryAfter: wait,
		Message: fmt.Sprintf("This key may send %d requests in %s, which are used up. Try again in %s.", c.Rate.Requests, c.Rate.Per, wait.Round(time.Millisecond))}
}
