package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/resilience"
)

// scripted is an upstream that answers each key by its own script: the n-th call on it gets the n-th entry, and what
// comes after the last one gets the last again. An entry is a status, a status with the seconds of a Retry-After behind
// a slash, or a whole body, which is sent as events if it begins with "data:" or "event:".
type scripted struct {
	mu      sync.Mutex
	scripts map[string][]string
	calls   map[string]int
}

const (
	goodChat = `{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`
	word     = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}` + "\n\n"
	lastWord = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

// ServeHTTP answers a call.
func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	script := s.scripts[key]
	entry := "200"
	if len(script) > 0 {
		entry = script[min(s.calls[key], len(script)-1)]
	}
	s.calls[key]++
	s.mu.Unlock()
	status, wait, _ := strings.Cut(entry, "/")
	code, err := strconv.Atoi(status)
	switch {
	case strings.HasPrefix(entry, "data:"), strings.HasPrefix(entry, "event:"):
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, entry)
		return
	case err != nil:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, entry)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if wait != "" {
		w.Header().Set("Retry-After", wait)
	}
	w.WriteHeader(code)
	if code == 200 {
		io.WriteString(w, goodChat)
		return
	}
	fmt.Fprintf(w, `{"error":{"message":"said %d"}}`, code)
}

func (s *scripted) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[key]
}

// field starts a gateway before a scripted upstream. Providers p, q and r have the models that anybody asks for; p has
// the keys p1 and p2 where two are wanted.
func field(t *testing.T, keys []string, scripts map[string][]string) (*gatewaytest.World, *scripted) {
	t.Helper()
	up := &scripted{scripts: scripts}
	var conf strings.Builder
	conf.WriteString("store: \"memory:\"\nproviders:\n")
	handlers := map[string]http.Handler{}
	for _, p := range []string{"p", "q", "r"} {
		fmt.Fprintf(&conf, "  %s:\n    base_url: \"$%s\"\n    connections:\n      - {id: %sx, api_key: \"${UNSET:-}\"}\n", p, p, p)
		handlers[p] = up
		for _, k := range keys {
			if k[:1] == p {
				fmt.Fprintf(&conf, "      - {id: %s, api_key: secret-%s}\n", k, k)
			}
		}
	}
	conf.WriteString("combos:\n  c: {targets: [p/m, q/m]}\n  nested: {targets: [p/m, c, r/m]}\n")
	return gatewaytest.Start(t, gatewaytest.Setup{Config: conf.String(), Handlers: handlers}), up
}

func askChat(t *testing.T, w *gatewaytest.World, model string, stream bool) gatewaytest.Answer {
	t.Helper()
	return w.Post(t.Context(), "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"q"}]}`, model, stream))
}

func virtually(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// TestEveryUpstreamStatusMovesOn: whatever status an upstream refuses with that is not about the request, the next
// provider answers, in the same request and at once.
func TestEveryUpstreamStatusMovesOn(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"401", "402", "403", "408", "409", "425", "429", "429/47", "500", "502", "503", "504", "507", "520", "521", "522", "523", "524", "525", "526", "527", "529", "530", "598", "599"} {
		virtually(t, status, func(t *testing.T) {
			w, _ := field(t, []string{"p1", "q1"}, map[string][]string{"secret-p1": {status}})
			begun := time.Now()
			a := askChat(t, w, "c", false)
			if took := time.Since(begun); a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "q" || a.Header.Get("X-Omniroute-Attempts") != "2" || took > 100*time.Millisecond {
				t.Errorf("after %s: %+v", took, a)
			}
		})
	}
}

// TestFieldReports plays what people met before gateways, and what they should have met.
func TestFieldReports(t *testing.T) {
	t.Parallel()
	virtually(t, "a bad request costs one call, however many keys there are", func(t *testing.T) {
		keys, scripts := []string{}, map[string][]string{}
		for i := range 20 {
			keys = append(keys, fmt.Sprintf("p%d", i))
			scripts[fmt.Sprintf("secret-p%d", i)] = []string{`400`}
		}
		w, up := field(t, keys, scripts)
		a := askChat(t, w, "p/m", false)
		total := 0
		for i := range 20 {
			total += up.count(fmt.Sprintf("secret-p%d", i))
		}
		if a.Status != 400 || total != 1 {
			t.Errorf("%d calls: %+v", total, a)
		}
	})
	virtually(t, "a dead key is out, and its sibling serves the same request", func(t *testing.T) {
		w, up := field(t, []string{"p1", "p2"}, map[string][]string{"secret-p1": {"401"}, "secret-p2": {"200"}})
		for range 4 {
			if a := askChat(t, w, "p/m", false); a.Status != 200 {
				t.Errorf("%+v", a)
			}
		}
		if n := up.count("secret-p1"); n != 1 {
			t.Errorf("%d calls on the dead key", n)
		}
	})
	virtually(t, "one failure takes the last target from nobody", func(t *testing.T) {
		w, _ := field(t, []string{"p1"}, map[string][]string{"secret-p1": {"503", "200"}})
		for range 2 {
			if a := askChat(t, w, "p/m", false); a.Status != 200 {
				t.Errorf("%+v", a)
			}
		}
	})
	virtually(t, "single failures among many answers add up to nothing", func(t *testing.T) {
		var script []string
		for range 8 {
			script = append(script, "500")
			for range 20 {
				script = append(script, "200")
			}
		}
		w, up := field(t, []string{"p1", "q1"}, map[string][]string{"secret-p1": script})
		for range 160 {
			if a := askChat(t, w, "c", false); a.Status != 200 {
				t.Errorf("%+v", a)
			}
		}
		if n := up.count("secret-p1"); n != 160 {
			t.Errorf("%d of 160 requests were tried there", n)
		}
	})
	virtually(t, "a short stated wait is waited for before the next provider is paid", func(t *testing.T) {
		w, up := field(t, []string{"p1", "q1"}, map[string][]string{"secret-p1": {"503/2", "200"}})
		begun := time.Now()
		a := askChat(t, w, "c", false)
		if took := time.Since(begun); a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "p" || took < 2*time.Second || took > 2100*time.Millisecond || up.count("secret-q1") != 0 {
			t.Errorf("after %s: %+v", took, a)
		}
		if s := w.Engine.Status().Providers[0].Breaker.State; s == resilience.Open {
			t.Error("the breaker is open")
		}
	})
	virtually(t, "a combo whose inner combo fails is one error with every cause", func(t *testing.T) {
		w, _ := field(t, []string{"p1", "q1", "r1"}, map[string][]string{"secret-p1": {"500"}, "secret-q1": {"429/300"}, "secret-r1": {"402"}})
		a := askChat(t, w, "nested", false)
		if a.Status != 503 || strings.Count(a.Body, `{"error":`) != 1 || !strings.Contains(a.Body, `"provider":"p"`) || !strings.Contains(a.Body, `"provider":"q"`) || !strings.Contains(a.Body, `"provider":"r"`) {
			t.Errorf("%+v", a)
		}
		if a = askChat(t, w, "q/other", false); a.Status != 429 || !strings.Contains(a.Body, `"layer":"connection"`) {
			t.Errorf("the account that was told to wait: %+v", a)
		}
	})
	virtually(t, "an inner combo's last target serves the outer one", func(t *testing.T) {
		w, _ := field(t, []string{"p1", "q1", "r1"}, map[string][]string{"secret-p1": {"503"}})
		if a := askChat(t, w, "nested", false); a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "q" {
			t.Errorf("%+v", a)
		}
	})
	virtually(t, "a provider without a key is passed over", func(t *testing.T) {
		w, _ := field(t, []string{"q1"}, nil)
		if a := askChat(t, w, "c", false); a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "q" {
			t.Errorf("%+v", a)
		}
	})
	virtually(t, "an error inside a stream that has begun ends it once and at once", func(t *testing.T) {
		cut := fmt.Sprintf(word, "a") + fmt.Sprintf(word, "b") + fmt.Sprintf(word, "c") + `data: {"error":{"message":"slow down","code":429}}` + "\n\n"
		w, _ := field(t, []string{"p1"}, map[string][]string{"secret-p1": {cut}})
		begun := time.Now()
		a := askChat(t, w, "p/m", true)
		if took := time.Since(begun); a.Text != "abc" || a.Done || strings.Count(a.Body, `"error":{`) != 1 || took > 100*time.Millisecond {
			t.Errorf("after %s: %+v", took, a)
		}
	})
	virtually(t, "usage in the middle ends no stream", func(t *testing.T) {
		odd := fmt.Sprintf(word, "a") + `data: {"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n" + fmt.Sprintf(word, "b") + lastWord
		w, _ := field(t, []string{"p1"}, map[string][]string{"secret-p1": {odd}})
		if a := askChat(t, w, "p/m", true); a.Text != "ab" || !a.Done || a.Body != odd {
			t.Errorf("%+v", a)
		}
	})
	virtually(t, "a limit that a probe meets leaves the probe's place to the next", func(t *testing.T) {
		w, up := field(t, []string{"p1"}, map[string][]string{"secret-p1": {"500", "500", "500", "500", "500", "429/1", "200"}})
		for range 5 {
			w.Engine.RecordFailure(resilience.Key{Provider: "p", Connection: "p1", Model: "m"}, resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
		}
		time.Sleep(40 * time.Second)
		var last gatewaytest.Answer
		for range 40 {
			last = askChat(t, w, "p/m", false)
			time.Sleep(2 * time.Second)
		}
		if s := w.Engine.Status().Providers[0].Breaker.State; last.Status != 200 || s != resilience.Closed || up.count("secret-p1") < 7 {
			t.Errorf("%s after %d calls: %+v", s, up.count("secret-p1"), last)
		}
	})
	virtually(t, "stories tell of as many calls as upstreams have seen", func(t *testing.T) {
		w, up := field(t, []string{"p1", "p2", "q1", "r1"}, map[string][]string{"secret-p1": {"500", "429/1", "200"}, "secret-p2": {"401"}, "secret-q1": {"503", "200", "529"}})
		for range 30 {
			askChat(t, w, "nested", false)
			time.Sleep(700 * time.Millisecond)
		}
		told := map[string]int{}
		for _, s := range w.Stories() {
			for _, a := range s.Attempts {
				told["secret-"+a.Key.Connection]++
			}
		}
		for _, key := range []string{"secret-p1", "secret-p2", "secret-q1", "secret-r1"} {
			if told[key] != up.count(key) {
				t.Errorf("%s was called %d times, and stories tell of %d", key, up.count(key), told[key])
			}
		}
	})
}

// TestFailureBehindTheFirstEvent: an answer that has been announced and not begun is nothing yet, so that another
// provider's is announced in its place and the client sees one.
func TestFailureBehindTheFirstEvent(t *testing.T) {
	t.Parallel()
	virtually(t, "responses", func(t *testing.T) {
		const failed = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_p\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
			"event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"resp_p\",\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":\"insufficient_quota\",\"message\":\"You exceeded your current quota.\"},\"output\":[]}}\n\n"
		const good = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_q\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hi\"}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"resp_q\",\"object\":\"response\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}]}]}}\n\n"
		p, q := &upstream{answers: []answer{{body: failed}}}, &upstream{answers: []answer{{body: good}}}
		w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"p": p, "q": q}, Config: `
store: "memory:"
providers:
  p: {dialect: responses, base_url: "$p", connections: [{id: p1, api_key: secret-p1}]}
  q: {dialect: responses, base_url: "$q", connections: [{id: q1, api_key: secret-q1}]}
combos: {c: {targets: [p/m, q/m]}}
`})
		a := w.Post(t.Context(), "/v1/responses", `{"model":"c","stream":true,"input":"q"}`)
		if a.Status != 200 || strings.Count(a.Body, `"type":"response.created"`) != 1 || strings.Contains(a.Body, "resp_p") || a.Body != good {
			t.Errorf("%+v", a)
		}
		if s := w.Engine.Status().Providers[0].Connections[0].State; s != resilience.Quarantined {
			t.Errorf("the account without credit is %s", s)
		}
	})
}
