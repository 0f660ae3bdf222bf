// Package cluster runs three real gateways on one real redis-server and breaks what can break.
package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"omniroute/e2e/harness"
)

// upstream answers by the key: what each key is answered can be changed. It knows who asks, since
// every gateway sends its own header.
type upstream struct {
	url string

	mu     sync.Mutex
	mode   map[string]string // by key: "" is well, "429", "500" or "hold"
	calls  map[string][]call // by key
	flying map[string]int
	most   map[string]int
	came   chan string   // the node of a call that is held
	held   chan struct{} // closed to let those go on
}

type call struct {
	node string
	at   time.Time
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{mode: map[string]string{}, calls: map[string][]call{}, flying: map[string]int{}, most: map[string]int{},
		came: make(chan string, 1000), held: make(chan struct{})}
	s := httptest.NewServer(u)
	t.Cleanup(s.Close)
	u.url = s.URL + "/v1"
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
	key, node := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Node")
	u.mu.Lock()
	mode, held := u.mode[key], u.held
	u.calls[key] = append(u.calls[key], call{node, time.Now()})
	u.flying[key]++
	u.most[key] = max(u.most[key], u.flying[key])
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		u.flying[key]--
		u.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	switch mode {
	case "hold":
		u.came <- node
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	case "429":
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(429)
		fmt.Fprint(w, `{"error":{"message":"slow down","type":"rate_limit_error"}}`)
		return
	case "429-soon":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(429)
		fmt.Fprint(w, `{"error":{"message":"slow down","type":"rate_limit_error"}}`)
		return
	case "500":
		w.WriteHeader(500)
		fmt.Fprint(w, `{"error":{"message":"no","type":"server_error"}}`)
		return
	}
	fmt.Fprint(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
}

func (u *upstream) set(key, mode string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mode[key] = mode
}

func (u *upstream) callsOf(key string) []call {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]call(nil), u.calls[key]...)
}

func (u *upstream) mostOf(key string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.most[key]
}

// letGo ends the holding.
func (u *upstream) letGo() {
	u.mu.Lock()
	defer u.mu.Unlock()
	close(u.held)
	u.held = make(chan struct{})
}

const config = `
store: redis://%[1]s/0
providers:
  p:
    base_url: %[2]s
    headers: {x-node: node-%[3]d}
    models: [m]
    rate_limit_scope: connection
    connections: [{id: main, api_key: key-main}, {id: spare, api_key: key-spare}, {id: third, api_key: key-third}]
  q:
    base_url: %[2]s
    headers: {x-node: node-%[3]d}
    rate_limit_scope: model
    connections: [{id: only, api_key: key-q}]
combos:
  safe: {targets: [{target: p/m, connection: main}, {target: p/m, connection: spare}]}
  third: {targets: [{target: p/m, connection: third}, {target: p/m, connection: spare}]}
  alone: {targets: [{target: p/m, connection: main}]}
  brief: {targets: [{target: p/m, connection: main}], max_wait: 0s, patience: 0s}
%[4]s`

// patience is for how long tests wait for what comes at once, unless the machine is busy with something else.
const patience = time.Minute

// node is one gateway.
type node struct {
	*harness.Gateway
	t *testing.T
}

// start runs a gateway for each address of the store: the server's own, or a proxy's.
func start(t *testing.T, u *upstream, more string, stores ...string) []*node {
	t.Helper()
	var nodes []*node
	for i, store := range stores {
		nodes = append(nodes, &node{harness.Start(t, harness.Options{Config: fmt.Sprintf(config, store, u.url, i, more)}), t})
	}
	for _, n := range nodes {
		n.until("all nodes", func(s status) bool { return s.Cluster == "ok" && len(s.Nodes) == len(stores) })
	}
	return nodes
}

type status struct {
	Cluster     string `json:"cluster"`
	Persistence string `json:"persistence"`
	Nodes       []struct {
		ID string `json:"id"`
	} `json:"nodes"`
	Providers []struct {
		ID      string `json:"id"`
		Breaker struct {
			State string `json:"state"`
		} `json:"breaker"`
		Connections []struct {
			ID    string `json:"id"`
			State string `json:"state"`
		} `json:"connections"`
	} `json:"providers"`
}

func (s status) connection(id string) string {
	for _, c := range s.Providers[0].Connections {
		if c.ID == id {
			return c.State
		}
	}
	return ""
}

func (n *node) status() (s status) {
	n.t.Helper()
	if err := json.Unmarshal([]byte(n.Status()), &s); err != nil || len(s.Providers) == 0 {
		n.t.Fatalf("status: %v %s", err, n.Status())
	}
	return s
}

// until waits for a status and returns when it came.
func (n *node) until(what string, is func(s status) bool) time.Time {
	n.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		s := n.status()
		if is(s) {
			return time.Now()
		}
		if time.Now().After(end) {
			n.t.Fatalf("%s: not %s: %+v", n.URL, what, s)
		}
	}
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: 3 * patience}

// ask sends one request and returns the status.
func (n *node) ask(model string) (int, string) {
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]}`, model)
	resp, err := client.Post(n.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(answer)
}

// partings is how often nodes have lost the others.
func partings(nodes []*node) (n int) {
	for _, one := range nodes {
		n += strings.Count(one.Log(), "msg=cluster_isolated")
	}
	return n
}

// event is a transition that a gateway tells of.
type event struct {
	Type  string `json:"type"`
	Layer string `json:"layer"`
	Key   struct {
		Model string `json:"model"`
	} `json:"key"`
	at time.Time
}

// events follows a gateway's events until the test ends.
func (n *node) events() <-chan event {
	n.t.Helper()
	resp, err := client.Get(n.URL + "/admin/v1/events")
	if err != nil {
		n.t.Fatal(err)
	}
	out := make(chan event, 10_000)
	n.t.Cleanup(func() { resp.Body.Close() })
	go func() {
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var e event
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
				e.at = time.Now()
				out <- e
			}
		}
	}()
	return out
}

// load sends requests to every node until stopped and fails the test for each that is not
// answered well.
type load struct {
	t    *testing.T
	stop chan struct{}
	wg   sync.WaitGroup
	mu   sync.Mutex
	sent int
}

func startLoad(t *testing.T, model string, nodes []*node) *load {
	l := &load{t: t, stop: make(chan struct{})}
	for _, n := range nodes {
		for range 2 {
			l.wg.Go(func() { l.run(n, model) })
		}
	}
	return l
}

func (l *load) run(n *node, model string) {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-pace.C:
		}
		code, answer := n.ask(model)
		if code != 200 {
			l.t.Errorf("%s: a client's request failed: %d %s", n.URL, code, answer)
			return
		}
		l.mu.Lock()
		l.sent++
		l.mu.Unlock()
	}
}

func (l *load) end() int {
	close(l.stop)
	l.wg.Wait()
	return l.sent
}
