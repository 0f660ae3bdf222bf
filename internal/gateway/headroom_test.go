package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// quota is an upstream that takes so many requests a minute of each key.
type quota struct {
	limit int
	tells bool // in its headers
	lies  bool // that nothing is left

	mu      sync.Mutex
	since   map[string]time.Time
	used    map[string]int
	asked   map[string]int
	refused map[string]int
}

func newQuota(limit int, tells bool) *quota {
	return &quota{limit: limit, tells: tells, since: map[string]time.Time{}, used: map[string]int{}, asked: map[string]int{}, refused: map[string]int{}}
}

func (q *quota) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key, now := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), time.Now()
	q.asked[key]++
	if now.Sub(q.since[key]) >= time.Minute {
		q.since[key], q.used[key] = now, 0
	}
	ok := q.used[key] < q.limit
	if ok {
		q.used[key]++
	}
	if q.tells || q.lies {
		left := q.limit - q.used[key]
		if q.lies {
			left = 0
		}
		w.Header().Set("x-ratelimit-limit-requests", fmt.Sprint(q.limit))
		w.Header().Set("x-ratelimit-remaining-requests", fmt.Sprint(left))
		w.Header().Set("x-ratelimit-reset-requests", q.since[key].Add(time.Minute).Sub(now).String())
	}
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		q.refused[key]++
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`)
		return
	}
	fmt.Fprint(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`)
}

const twoKeys = `
store: "memory:"
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: k1}, {id: k2, api_key: k2}], models: [m]}
relay: {max_wait: 10s}
combos:
  c: {targets: [{target: p/m, connection: k1}, {target: p/m, connection: k2}]}
`

func quotaWorld(t *testing.T, q *quota, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f(t, gatewaytest.Start(t, gatewaytest.Setup{Config: twoKeys, Handlers: map[string]http.Handler{"p": q}}))
	})
}

// TestLimitsAreKeptBeforeTheyAreHit: two keys with 10 requests a minute each, 20 requests spread
// over a minute. With headers no 429 at all; without them at most one for each key. Whether the
// connections take turns or one goes before the other makes no difference.
func TestLimitsAreKeptBeforeTheyAreHit(t *testing.T) {
	for _, tells := range []bool{true, false} {
		for _, model := range []string{"p/m", "c"} {
			t.Run(fmt.Sprintf("headers %v, %s", tells, model), func(t *testing.T) {
				q := newQuota(10, tells)
				quotaWorld(t, q, func(t *testing.T, w *gatewaytest.World) {
					for i := range 20 {
						if a := w.Chat(t.Context(), model, false); a.Status != 200 {
							t.Fatalf("request %d: %+v", i, a)
						}
						time.Sleep(3 * time.Second)
					}
					most := 1
					if tells {
						most = 0
					}
					for _, k := range []string{"k1", "k2"} {
						if q.refused[k] > most {
							t.Errorf("%s has refused %d requests, want at most %d", k, q.refused[k], most)
						}
					}
				})
			})
		}
	}
}

// TestRefusalsAreLearnedFrom: without headers, over minutes with more load than one key takes, the
// key that comes first is refused once and not again.
func TestRefusalsAreLearnedFrom(t *testing.T) {
	q := newQuota(10, false)
	quotaWorld(t, q, func(t *testing.T, w *gatewaytest.World) {
		for i := range 60 { // 15 a minute for 4 minutes
			if a := w.Chat(t.Context(), "c", false); a.Status != 200 {
				t.Fatalf("request %d: %+v", i, a)
			}
			time.Sleep(4 * time.Second)
		}
		if q.refused["k1"] > 2 || q.refused["k2"] != 0 {
			t.Errorf("refused: %v of %v", q.refused, q.asked)
		}
		if q.asked["k1"] < 30 {
			t.Errorf("the first key is hardly used: %v", q.asked)
		}
	})
}

// TestNothingLeftIsWaitedFor: when no key has anything left and one will soon, the request waits for
// it, as it would for a recovery.
func TestNothingLeftIsWaitedFor(t *testing.T) {
	q := newQuota(1, true)
	quotaWorld(t, q, func(t *testing.T, w *gatewaytest.World) {
		w.Chat(t.Context(), "c", false)
		time.Sleep(2 * time.Second)
		w.Chat(t.Context(), "c", false)
		time.Sleep(53 * time.Second)
		start := time.Now()
		a := w.Chat(t.Context(), "c", false)
		if took := time.Since(start); a.Status != 200 || took != 5*time.Second || q.refused["k1"]+q.refused["k2"] != 0 {
			t.Errorf("after %v: %+v, refused %v", took, a, q.refused)
		}
	})
}

// TestStaleKnowledgeIsNoOutage: when nothing has anything left for long, the best is asked all the
// same; what is known may be wrong.
func TestStaleKnowledgeIsNoOutage(t *testing.T) {
	q := newQuota(100, true)
	q.lies = true
	quotaWorld(t, q, func(t *testing.T, w *gatewaytest.World) {
		for i := range 10 {
			start := time.Now()
			if a := w.Chat(t.Context(), "c", false); a.Status != 200 || time.Since(start) > 50*time.Millisecond {
				t.Fatalf("request %d after %v: %+v", i, time.Since(start), a)
			}
		}
	})
}

// TestHeadroomIsExplained: the explanation and the story of a request say who was passed over, why
// and until when.
func TestHeadroomIsExplained(t *testing.T) {
	q := newQuota(1, true)
	quotaWorld(t, q, func(t *testing.T, w *gatewaytest.World) {
		w.Chat(t.Context(), "c", false)
		to, err := w.Router.Resolve("openai", "c")
		if err != nil {
			t.Fatal(err)
		}
		got, _ := route.Explain(to, route.Question{}, time.Now())
		first := got[0]
		if first.Eligible || *first.Layer != resilience.LayerHeadroom || *first.Kind != resilience.KindRateLimit || first.RetryAfterMs != 60000 || !got[1].Eligible {
			t.Errorf("explained as %+v", got)
		}
		if !strings.Contains(first.Reason, "0 of 1 left of its requests") {
			t.Errorf("the reason is %q", first.Reason)
		}
		w.Chat(t.Context(), "c", false)
		stories := w.Stories()
		skipped := stories[len(stories)-1].Skipped
		if len(skipped) != 1 || skipped[0].Key.Connection != "k1" || skipped[0].Layer != resilience.LayerHeadroom || skipped[0].RetryAfter != time.Minute {
			t.Errorf("the story skips %+v", skipped)
		}
		told := w.Router.Headroom(time.Now())
		if len(told) != 2 || told[0].Connection != "k1" || told[0].Model != "m" || told[0].Bucket != "requests" || told[0].Limit != 1 || told[0].Remaining != 0 || !told[0].ResetAt.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("the status tells %+v", told)
		}
		// Both are used up and the wait would be too long: one is asked, and refuses.
		a := w.Chat(t.Context(), "c", false)
		if a.Status != 429 || q.refused["k1"]+q.refused["k2"] == 0 {
			t.Errorf("%+v, refused %v", a, q.refused)
		}
	})
}

// TestMostHeadroomGoesFirst: the strategy sends requests to where most is left, so that a large
// account and a small one run out together.
func TestMostHeadroomGoesFirst(t *testing.T) {
	large, small := newQuota(40, true), newQuota(10, true)
	const conf = `
store: "memory:"
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: k1}], models: [m]}
  q: {base_url: "$q", connections: [{id: k2, api_key: k2}], models: [m]}
combos:
  c: {strategy: headroom, targets: [q/m, p/m]}
`
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := gatewaytest.Start(t, gatewaytest.Setup{Config: conf, Handlers: map[string]http.Handler{"p": large, "q": small}})
		for i := range 40 {
			if a := w.Chat(t.Context(), "c", false); a.Status != 200 {
				t.Fatalf("request %d: %+v", i, a)
			}
		}
		if l, s := large.asked["k1"], small.asked["k2"]; l < 31 || l > 33 || l+s != 40 {
			t.Errorf("%d requests to the account of 40 and %d to that of 10, want 32 and 8", l, s)
		}
	})
}
