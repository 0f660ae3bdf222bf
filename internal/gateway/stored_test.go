package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"omniroute/internal/gateway/gatewaytest"
)

const storedConfig = `
store: "memory:"
client_keys:
  - everything-key
  - other-key
  - {key: coding-key, models: [coding]}
  - {key: narrow-key, targets: ["q/*"]}
providers:
  p: {dialect: responses, base_url: "$p", models: [m, large], connections: [{id: k1, api_key: secret-p1}]}
  q: {dialect: responses, base_url: "$q", models: [m], connections: [{id: k2, api_key: secret-q2}]}
combos:
  coding: {targets: [p/m, q/m]}
`

// TestStoredResponsesOfOthers: the id of a response that somebody else asked for opens no way to what a key may not have.
func TestStoredResponsesOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		response := func(id string) answer {
			return answer{kind: "application/json", body: `{"id":"` + id + `","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}`}
		}
		p, q := &upstream{answers: []answer{response("resp_1"), response("resp_2"), response("resp_3")}}, &upstream{answers: []answer{response("resp_q")}}
		w := gatewaytest.Start(t, gatewaytest.Setup{Config: storedConfig, Handlers: map[string]http.Handler{"p": p, "q": q}})
		ask := func(method, path, key, body string) gatewaytest.Answer {
			req, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+key)
			return w.Do(req)
		}
		goOn := func(key, model, id string) gatewaytest.Answer {
			return ask("POST", "/v1/responses", key, `{"model": "`+model+`", "input": "go on", "previous_response_id": "`+id+`"}`)
		}
		made := ask("POST", "/v1/responses", "everything-key", `{"model": "p/large", "input": "hi"}`)
		own := ask("POST", "/v1/responses", "coding-key", `{"model": "coding", "input": "hi"}`)
		if made.Status != 200 || made.ID == "" || own.Status != 200 || own.ID == "" {
			t.Fatalf("%+v\n%+v", made, own)
		}
		for _, key := range []string{"coding-key", "narrow-key"} {
			before := p.total() + q.total()
			for what, a := range map[string]gatewaytest.Answer{
				"reads it":   ask("GET", "/v1/responses/"+made.ID, key, ""),
				"deletes it": ask("DELETE", "/v1/responses/"+made.ID, key, ""),
				"stops it":   ask("POST", "/v1/responses/"+made.ID+"/cancel", key, ""),
				"goes on":    goOn(key, "coding", made.ID),
			} {
				if a.Status != 404 || !strings.Contains(a.Body, "No response "+made.ID) || strings.Contains(a.Body, "large") {
					t.Errorf("%s %s: %d %s", key, what, a.Status, a.Body)
				}
			}
			if after := p.total() + q.total(); after != before {
				t.Errorf("%s: an upstream was asked", key)
			}
		}
		for _, ids := range [][2]string{{made.ID, own.ID}, {own.ID, made.ID}} {
			a := ask("POST", "/v1/responses", "coding-key", `{"model": "coding", "input": "go on", "previous_response_id": "`+ids[0]+`", "previous_response_id": "`+ids[1]+`"}`)
			if a.Status != 400 || !strings.Contains(a.Body, "two responses") {
				t.Errorf("goes on from two: %+v", a)
			}
		}
		// One's own, though its target has no name that the key may ask for; and keys that may have everything.
		if a := goOn("coding-key", "coding", own.ID); a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "p" {
			t.Errorf("goes on from its own: %+v", a)
		}
		for _, key := range []string{"everything-key", "other-key"} {
			if a := goOn(key, "p/large", made.ID); a.Status != 200 {
				t.Errorf("%s: %+v", key, a)
			}
		}
	})
}
