package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"omniroute/internal/lab"
	"omniroute/resilience"
)

// TestErrorRulesInTraffic shows that an operator's rule comes before the built-in ones, and what
// cooldown and backoff make of the exclusions. Every request makes three attempts, as it waits for the
// only target between them.
func TestErrorRulesInTraffic(t *testing.T) {
	t.Parallel()
	empty := lab.Status(403, "application/json", `{"error":{"message":"The credit pool empty signal was raised."}}`, http.Header{})
	for name, tt := range map[string]struct {
		rules    string
		kind     resilience.Kind
		rule     string
		cooldown int64 // of the last attempt, in ms
		level    int
		attempts int
	}{
		"none":           {"", resilience.KindPermission, "default.403", 4000, 3, 3},
		"constant":       {`{cooldown: 150ms, backoff: false}`, resilience.KindQuotaExhausted, "pool", 150, 3, 3},
		"doubling":       {`{cooldown: 150ms, backoff: true}`, resilience.KindQuotaExhausted, "pool", 600, 3, 3},
		"above the cap":  {`{cooldown: 1h}`, resilience.KindQuotaExhausted, "pool", 3_600_000, 1, 1},
		"the kind's own": {`{}`, resilience.KindQuotaExhausted, "pool", 300_000, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, base := upstream(t, func(o *lab.Options) { o.Script = []lab.Phase{lab.Always(empty)} })
			more := "  one: {targets: [{target: acme/large, connection: main}]}\nrelay: {max_attempts: 3}\n"
			if tt.rules != "" {
				own := strings.Trim(tt.rules, "{}")
				if own != "" {
					own = ", " + own
				}
				more += fmt.Sprintf("error_rules:\n  - {id: pool, provider: acme, status: 403, text: \"credit pool empty\", scope: connection, kind: quota_exhausted%s}\n", own)
			}
			g := start(t, t.TempDir(), yaml(base, more))
			if code, text := g.chat("one"); code < 400 {
				t.Errorf("%d %s", code, text)
			}
			c := g.status().Providers[0].Connections[0]
			if c.State != resilience.Cooling || *c.Kind != tt.kind || c.LastError.Rule != tt.rule || c.CooldownMs != tt.cooldown || c.BackoffLevel != tt.level || p.Total() != tt.attempts {
				t.Errorf("%d attempts, %+v (%v, by %s), want %+v", p.Total(), c, *c.Kind, c.LastError.Rule, tt)
			}
		})
	}
}
