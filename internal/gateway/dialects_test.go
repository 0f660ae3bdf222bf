package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"omniroute/internal/gateway/gatewaytest"
)

// upstream is a handler that keeps what it was asked and gives its answers in turn, the last one again and
// again.
type upstream struct {
	mu      sync.Mutex
	asked   []seen
	answers []answer
}

type seen struct {
	method, path, query, body string
	header                    http.Header
}

type answer struct {
	status int
	kind   string // content type; empty means events
	body   string
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	n := min(len(u.asked), len(u.answers)-1)
	u.asked = append(u.asked, seen{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Header.Clone()})
	a := u.answers[n]
	u.mu.Unlock()
	if a.kind == "" {
		a.kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", a.kind)
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	io.WriteString(w, a.body)
}

func (u *upstream) last(t *testing.T) seen {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.asked) == 0 {
		t.Fatal("the upstream was not asked")
	}
	return u.asked[len(u.asked)-1]
}

func (u *upstream) total() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.asked)
}

// vendors is a gateway with one provider of each dialect.
const vendors = `
providers:
  chat: {dialect: openai, base_url: "$chat", models: [m-chat], connections: [{id: a, api_key: key-chat}]}
  resp: {dialect: responses, base_url: "$resp", models: [m-resp], connections: [{id: a, api_key: key-a}, {id: b, api_key: key-b}]}
  anth: {dialect: anthropic, base_url: "$anth", models: [m-anth], connections: [{id: a, api_key: key-anth}]}
  goog: {dialect: gemini, base_url: "$goog", models: [m-goog], connections: [{id: a, api_key: key-goog}]}
combos:
  across: {targets: [anth/m-anth, chat/m-chat]}
relay: {patience: 1ms, max_wait: 1ms}
`

func across(t *testing.T, ups map[string]*upstream, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handlers := map[string]http.Handler{}
		for _, name := range []string{"chat", "resp", "anth", "goog"} {
			if ups[name] == nil {
				ups[name] = &upstream{answers: []answer{{status: 500, kind: "application/json", body: "{}"}}}
			}
			handlers[name] = ups[name]
		}
		f(t, gatewaytest.Start(t, gatewaytest.Setup{Config: vendors, Handlers: handlers}))
	})
}

const (
	chatTools = `data: {"id":"c1","object":"chat.completion.chunk","model":"m-up","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}

data: {"id":"c1","object":"chat.completion.chunk","model":"m-up","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"index":1,"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}]}}]}

data: {"id":"c1","object":"chat.completion.chunk","model":"m-up","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`
	overloaded = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}

`
	askMessages = `{"model":%q,"max_tokens":50,"stream":true,"messages":[{"role":"user","content":"q"}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`
)

// TestFailoverAcrossVendors: the first target fails by an error event, the second one speaks
// another dialect, and the client sees one valid stream of its own.
func TestFailoverAcrossVendors(t *testing.T) {
	ups := map[string]*upstream{"anth": {answers: []answer{{body: overloaded}}}, "chat": {answers: []answer{{body: chatTools}}}}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		req, _ := http.NewRequest("POST", "http://gateway.localhost/v1/messages?beta=true", strings.NewReader(fmt.Sprintf(askMessages, "across")))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"b"}, "X-Custom": {"kept"}}
		a := w.Do(req)
		if a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "chat" || a.Header.Get("X-Omniroute-Attempts") != "2" || a.Header.Get("Request-Id") == "" {
			t.Fatalf("%+v", a)
		}
		var kinds []string
		for block := range strings.SplitSeq(strings.TrimSpace(a.Body), "\n\n") {
			name, data, ok := strings.Cut(block, "\ndata: ")
			var v struct{ Type string }
			if err := json.Unmarshal([]byte(data), &v); err != nil || !ok || name != "event: "+v.Type {
				t.Fatalf("%q: %v", block, err)
			}
			kinds = append(kinds, v.Type)
		}
		want := "message_start content_block_start content_block_delta content_block_stop content_block_start content_block_delta content_block_stop message_delta message_stop"
		if got := strings.Join(kinds, " "); got != want || strings.Contains(a.Body, "msg_1") || !strings.Contains(a.Body, `"stop_reason":"tool_use"`) {
			t.Errorf("%s\n%s", got, a.Body)
		}
		up := ups["chat"].last(t)
		if up.path != "/v1/chat/completions" || up.query != "" || up.header.Get("Authorization") != "Bearer key-chat" || up.header.Get("X-Custom") != "kept" ||
			up.header.Get("Anthropic-Version")+up.header.Get("Anthropic-Beta") != "" || !strings.Contains(up.body, `"model":"m-chat"`) {
			t.Errorf("%+v", up)
		}
		if first := ups["anth"].last(t); first.query != "beta=true" || first.header.Get("Anthropic-Beta") != "b" || first.body != strings.Replace(fmt.Sprintf(askMessages, "across"), `"across"`, `"m-anth"`, 1) {
			t.Errorf("what passes through was changed: %+v", first)
		}
	})
}

// TestEachToEach: a question in each dialect to an upstream of each other one.
func TestEachToEach(t *testing.T) {
	ask := map[string]struct{ path, body, text string }{
		"openai":    {"/v1/chat/completions", `{"model":"M","messages":[{"role":"user","content":"q"}]}`, `"content":"Hi"`},
		"responses": {"/v1/responses", `{"model":"M","input":"q"}`, `"text":"Hi"`},
		"anthropic": {"/v1/messages", `{"model":"M","max_tokens":5,"messages":[{"role":"user","content":"q"}]}`, `"text":"Hi"`},
		"gemini":    {"/v1beta/models/M:generateContent", `{"contents":[{"parts":[{"text":"q"}]}]}`, `"text":"Hi"`},
	}
	ups := map[string]*upstream{}
	for name, body := range map[string]string{
		"chat": `{"id":"c","object":"chat.completion","model":"u","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`,
		"resp": `{"id":"resp_1","object":"response","status":"completed","model":"u","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}`,
		"anth": `{"id":"msg_1","type":"message","role":"assistant","model":"u","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
		"goog": `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}`,
	} {
		ups[name] = &upstream{answers: []answer{{kind: "application/json", body: body}}}
	}
	paths := map[string]string{"chat": "/v1/chat/completions", "resp": "/v1/responses", "anth": "/v1/messages", "goog": "/v1/models/m-goog:generateContent"}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		for client, c := range ask {
			for name, path := range paths {
				sub := strings.NewReplacer(`"M"`, `"m-`+name+`"`, "/M:", "/m-"+name+":")
				a := w.Post(t.Context(), sub.Replace(c.path), sub.Replace(c.body))
				if a.Status != 200 || !strings.Contains(a.Body, c.text) || a.Header.Get("Content-Type") != "application/json" {
					t.Errorf("%s to %s: %+v", client, name, a)
				}
				if up := ups[name].last(t); up.path != path {
					t.Errorf("%s to %s went to %s", client, name, up.path)
				}
			}
		}
		a := w.Post(t.Context(), "/v1beta/models/goog%2Fm-goog:generateContent", ask["gemini"].body)
		if a.Status != 200 || ups["goog"].last(t).path != paths["goog"] {
			t.Errorf("an escaped slash: %+v", a)
		}
	})
}

// TestUnfitTargets: a target whose dialect cannot express the request is skipped, and is no attempt; when none can,
// the client hears which field is at fault.
func TestUnfitTargets(t *testing.T) {
	ups := map[string]*upstream{"chat": {answers: []answer{{kind: "application/json", body: `{"choices":[{"message":{"content":"Hi"}},{"message":{"content":"Ho"},"index":1}]}`}}}}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		const several = `{"model":%q,"n":2,"messages":[{"role":"user","content":"q"}]}`
		a := w.Post(t.Context(), "/v1/chat/completions", fmt.Sprintf(several, "across"))
		if a.Status != 200 || a.Header.Get("X-Omniroute-Attempts") != "1" || ups["anth"].total() != 0 {
			t.Errorf("%+v", a)
		}
		if s := w.Stories(); len(s) != 1 || len(s[0].Skipped) != 1 || !s[0].Skipped[0].Unfit || !strings.HasPrefix(s[0].Skipped[0].Reason, "The field n ") {
			t.Errorf("the trace does not say why a target was passed over: %+v", s)
		}
		a = w.Post(t.Context(), "/v1/chat/completions", fmt.Sprintf(several, "m-anth"))
		if a.Status != 400 || a.Error != "unsupported_parameter" || !strings.Contains(a.Body, `"param":"n"`) || !strings.Contains(a.Body, `"skipped":[{"provider":"anth"`) || ups["anth"].total() != 0 {
			t.Errorf("%+v", a)
		}
		if stories := w.Stories(); len(stories[len(stories)-1].Skipped) != 1 || stories[len(stories)-1].Status != 400 {
			t.Errorf("%+v", stories[len(stories)-1])
		}
		a = w.Post(t.Context(), "/v1/messages", `{"model":"m-chat","messages":"q"}`)
		if a.Status != 400 || !strings.Contains(a.Body, `{"type":"error","error":{"type":"invalid_request_error","message":"The field messages must not be a JSON string.`) {
			t.Errorf("%+v", a)
		}
		a = w.Post(t.Context(), "/v1/messages/count_tokens", `{"model":"m-chat","messages":[{"role":"user","content":"q"}]}`)
		if a.Status != 404 {
			t.Errorf("a count that nobody makes: %+v", a)
		}
	})
}

// TestUnreadableForOthers: what only the client's own dialect knows goes to a target that speaks it, whatever else is
// in the combo.
func TestUnreadableForOthers(t *testing.T) {
	const told = `{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	ups := map[string]*upstream{"anth": {answers: []answer{{kind: "application/json", body: told}}}}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		const odd = `{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":{"new":1}}]}]}`
		if a := w.Post(t.Context(), "/v1/messages", fmt.Sprintf(odd, "across")); a.Status != 200 || ups["anth"].total() != 1 || ups["chat"].total() != 0 {
			t.Errorf("%+v", a)
		}
		if a := w.Post(t.Context(), "/v1/messages", fmt.Sprintf(odd, "m-chat")); a.Status != 400 || ups["chat"].total() != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// TestErrorsInTheClientsDialect: an outage, and a refusal whose words come from another dialect.
func TestErrorsInTheClientsDialect(t *testing.T) {
	ups := map[string]*upstream{"chat": {answers: []answer{{status: 400, kind: "application/json",
		body: `{"error":{"message":"This model's maximum context length is 10 tokens.","type":"invalid_request_error","code":"context_length_exceeded","param":"messages"}}`}}}}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		a := w.Post(t.Context(), "/v1/messages", fmt.Sprintf(askMessages, "m-chat"))
		if a.Status != 400 || !strings.Contains(a.Body, `"type":"invalid_request_error","message":"prompt is too long: This model's maximum`) {
			t.Errorf("%+v", a)
		}
		a = w.Post(t.Context(), "/v1/messages", fmt.Sprintf(askMessages, "m-anth"))
		if a.Status != 529 || !strings.Contains(a.Body, `"overloaded_error"`) || a.Header.Get("Retry-After") == "" {
			t.Errorf("%+v", a)
		}
		a = w.Post(t.Context(), "/v1beta/models/m-goog:streamGenerateContent?alt=sse", `{"contents":[]}`)
		if a.Status != 503 || !strings.Contains(a.Body, `"status":"UNAVAILABLE"`) {
			t.Errorf("%+v", a)
		}
		a = w.Post(t.Context(), "/v1beta/models/m-goog:streamGenerateContent", `{"contents":[]}`)
		if a.Status != 400 || !strings.Contains(a.Body, "alt=sse") {
			t.Errorf("%+v", a)
		}
		a = w.Post(t.Context(), "/v1/messages", `{`)
		if a.Status != 400 || !strings.HasPrefix(a.Body, `{"type":"error"`) {
			t.Errorf("%+v", a)
		}
	})
}

// TestStoredResponses: what names a stored response goes to the connection that has made it.
func TestStoredResponses(t *testing.T) {
	stored := func(id string) answer {
		return answer{kind: "application/json", body: `{"id":"` + id + `","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}`}
	}
	ups := map[string]*upstream{"resp": {answers: []answer{stored("resp_1"), stored("resp_2"), stored("resp_3")}}}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		made := map[string]string{}
		for _, id := range []string{"resp_1", "resp_2"} {
			a := w.Post(t.Context(), "/v1/responses", `{"model":"m-resp","input":"q"}`)
			if a.Status != 200 || a.ID != id {
				t.Fatalf("%+v", a)
			}
			made[id] = ups["resp"].last(t).header.Get("Authorization")
		}
		if made["resp_1"] == made["resp_2"] {
			t.Fatalf("both by one connection: %v", made)
		}
		for id, key := range made {
			for range 3 { // siblings would take turns
				if a := w.Post(t.Context(), "/v1/responses", `{"model":"m-resp","input":"q","previous_response_id":"`+id+`"}`); a.Status != 200 {
					t.Fatalf("%+v", a)
				}
				if up := ups["resp"].last(t); up.header.Get("Authorization") != key {
					t.Errorf("%s went to %s", id, up.header.Get("Authorization"))
				}
			}
			for _, method := range []string{"GET", "DELETE"} {
				req, _ := http.NewRequest(method, "http://gateway.localhost/v1/responses/"+id, nil)
				if a := w.Do(req); a.Status != 200 {
					t.Errorf("%s: %+v", method, a)
				}
				if up := ups["resp"].last(t); up.header.Get("Authorization") != key || up.method != method || up.path != "/v1/responses/"+id || up.body != "" {
					t.Errorf("%s: %+v", method, up)
				}
			}
		}
		a := w.Post(t.Context(), "/v1/responses", `{"model":"m-chat","input":"q","previous_response_id":"resp_x"}`)
		if a.Status != 400 || !strings.Contains(a.Body, `"param":"previous_response_id"`) {
			t.Errorf("%+v", a)
		}
	})
}

// TestModelsInTheCallersShape lists models for each API.
func TestModelsInTheCallersShape(t *testing.T) {
	across(t, map[string]*upstream{}, func(t *testing.T, w *gatewaytest.World) {
		get := func(path, version string) string {
			req, _ := http.NewRequest("GET", "http://gateway.localhost"+path, nil)
			if version != "" {
				req.Header.Set("Anthropic-Version", version)
			}
			a := w.Do(req)
			if a.Status != 200 {
				t.Errorf("%s: %+v", path, a)
			}
			return a.Body
		}
		for path, want := range map[string]string{
			"/v1/models":                 `{"data":[{"id":"across","object":"model"`,
			"/v1/models/m-chat":          `{"id":"m-chat","object":"model","created":0,"owned_by":"chat"}`,
			"/v1beta/models":             `{"models":[{"name":"models/across"`,
			"/v1beta/models/m-goog":      `{"name":"models/m-goog","baseModelId":"m-goog"`,
			"/v1/models?a":               `"object":"list"`,
			"/v1beta/models/goog/m-goog": `{"name":"models/goog/m-goog"`,
		} {
			if got := get(path, ""); !strings.Contains(got, want) {
				t.Errorf("%s: %s", path, got)
			}
		}
		got := get("/v1/models?limit=2", "2023-06-01")
		if !strings.HasPrefix(got, `{"data":[{"type":"model","id":"across","display_name":"across"`) || !strings.Contains(got, `"has_more":true,"first_id":"across","last_id":"m-chat"`) {
			t.Error(got)
		}
		if got = get("/v1/models?after_id=goog/m-goog", "2023-06-01"); !strings.Contains(got, `{"data":[],"has_more":false,"first_id":null,"last_id":null}`) {
			t.Error(got)
		}
		req, _ := http.NewRequest("HEAD", "http://gateway.localhost/api/hello", nil)
		if a := w.Do(req); a.Status != 200 {
			t.Errorf("%+v", a)
		}
	})
}

// TestForeignThoughtsDoNotPass: a thought that another vendor's model has had goes back to none
// that would refuse it.
func TestForeignThoughtsDoNotPass(t *testing.T) {
	ups := map[string]*upstream{"anth": {answers: []answer{{kind: "application/json",
		body: `{"id":"msg_1","type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`}}}}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		a := w.Post(t.Context(), "/v1/messages", `{"model":"m-anth","max_tokens":5,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"b21uaTE6Z2VtaW5pOmMybG4="},{"type":"text","text":"y"}]},{"role":"user","content":"z"}]}`)
		if up := ups["anth"].last(t); a.Status != 200 || up.body != `{"model":"m-anth","max_tokens":5,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"y"}]},{"role":"user","content":"z"}]}` {
			t.Errorf("%+v\n%s", a, up.body)
		}
	})
}

// TestBackgroundResponses: a response that is made in the background is not made twice (law R10).
func TestBackgroundResponses(t *testing.T) {
	ups := map[string]*upstream{}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		a := w.Post(t.Context(), "/v1/responses", `{"model":"m-resp","input":"q","background": true}`)
		if a.Status != 502 || ups["resp"].total() != 1 || !strings.Contains(a.Body, "not repeated") {
			t.Errorf("%d calls; %+v", ups["resp"].total(), a)
		}
		a = w.Post(t.Context(), "/v1/responses", `{"model":"m-chat","input":"q","background": true}`)
		if a.Status != 400 || !strings.Contains(a.Body, `"param":"background"`) {
			t.Errorf("%+v", a)
		}
	})
}
