package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

const sessionConfig = `
store: "memory:"
affinity: {fields: [prompt_cache_key, metadata.user_id]}
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: secret-p1}, {id: k2, api_key: secret-p2}, {id: k3, api_key: secret-p3}]}
`

// TestSessions: a session that is named by the header or by a configured member of the body stays with
// one key for twenty turns, and the answer says so; a name in another member is none.
func TestSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header, member string
		session        bool
	}{
		"header":             {header: "conversation 7", session: true},
		"body":               {member: `"prompt_cache_key": "key-7"`, session: true},
		"nested":             {member: `"metadata": {"user_id": "user_7"}`, session: true},
		"a number":           {member: `"prompt_cache_key": 7`, session: true},
		"another member":     {member: `"user": "somebody"`},
		"nothing":            {member: `"seed": 7`},
		"an object":          {member: `"prompt_cache_key": {"a": 1}`},
		"header before body": {header: "conversation 7", member: `"prompt_cache_key": "turn-%d"`, session: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := gatewaytest.New(t, sessionConfig, lab.Options{Name: "p", Keys: map[string]string{"secret-p1": "k1", "secret-p2": "k2", "secret-p3": "k3"}})
				var homes []string
				for turn := range 20 {
					member := c.member
					if strings.Contains(member, "%d") {
						member = fmt.Sprintf(member, turn)
					}
					if member != "" {
						member += ","
					}
					req, err := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions",
						strings.NewReader(`{`+member+`"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}`))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Content-Type", "application/json")
					if c.header != "" {
						req.Header.Set("x-session-id", c.header)
					}
					a := w.Do(req)
					want := ""
					if c.session {
						want = "home"
						if turn == 0 {
							want = "new"
						}
					}
					if a.Status != 200 || a.Header.Get("X-Omniroute-Session") != want {
						t.Fatalf("turn %d: %d %q %s", turn, a.Status, a.Header.Get("X-Omniroute-Session"), a.Body)
					}
					homes = append(homes, a.Header.Get("X-Omniroute-Connection"))
				}
				same := strings.Count(strings.Join(homes, " "), homes[0]) == 20
				if same != c.session {
					t.Errorf("%v", homes)
				}
				if s := w.Stories()[19].Session; (s == "home") != c.session {
					t.Errorf("the story says %q", s)
				}
			})
		})
	}
}
