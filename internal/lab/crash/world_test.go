package crash_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

// defaults is a configuration that says nothing but what is where. The second provider is the
// fallback, with a larger model.
const defaults = `
store: "memory:"
providers:
  first: {base_url: "$first", connections: [{id: k1, api_key: secret-1}], models: [{id: small, context: 8000}]}
  second: {base_url: "$second", connections: [{id: k2, api_key: secret-2}], models: [{id: large, context: 200000}]}
combos:
  c: {strategy: priority, targets: [first/small, second/large]}
`

// options is for users who would rather pay for a second call than wait or be told of a failure.
// No timeout before the first content is shorter than by default: what is slow is overtaken, not
// given up. Both providers' models go on from the beginning of an answer, or so it says here. What
// a content filter refuses is the client's to know, and no other model's to answer.
var options = strings.NewReplacer(
	"second/large]", "second/large], hedge: {after: 8s, budget: 5%}, recover: continue",
	"models:", "prefill: plain, models:",
).Replace(defaults) + `
relay: {patience_for: any, idle_timeout: 40s}
error_rules: [{status: 400, code: content_policy_violation, scope: client, kind: content_policy}]
`

// run is one scenario under one configuration.
type run struct {
	*gatewaytest.World
	t      *testing.T
	stream bool
	start  time.Time
	notes  []string
	grade  grade
}

// grade is how well a scenario went.
type grade int

const (
	none grade = iota // it does not apply
	fail
	part // the user is served, or told, yet not as well as could be
	pass
)

func (g grade) String() string { return [...]string{"-", "FAIL", "part", "pass"}[g] }

// must fails the scenario and partly takes a mark away, unless ok.
func (r *run) must(ok bool, format string, args ...any)   { r.lower(ok, fail, format, args...) }
func (r *run) partly(ok bool, format string, args ...any) { r.lower(ok, part, format, args...) }

func (r *run) lower(ok bool, to grade, format string, args ...any) {
	if ok {
		return
	}
	r.grade = min(r.grade, to)
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// took returns the time since the scenario began, or since its last call.
func (r *run) took() time.Duration {
	d := time.Since(r.start)
	r.start = time.Now()
	return d
}

func (r *run) first() *lab.Provider  { return r.Providers["first"] }
func (r *run) second() *lab.Provider { return r.Providers["second"] }

// ask sends one request and fails the scenario when the answer is neither whole nor one error.
func (r *run) ask() gatewaytest.Answer {
	more := ""
	if r.stream {
		more = `"stream":true,"stream_options":{"include_usage":true},`
	}
	a := r.Post(r.t.Context(), "/v1/chat/completions", `{"model":"c",`+more+`"messages":[{"role":"user","content":"Tell me."}]}`)
	r.must(a.Err == nil && a.Wrong == "", "transport %v, %s", a.Err, a.Wrong)
	whole := a.Finish != "" && (a.Done || !r.stream) && a.Error == ""
	r.must(whole || a.Error != "" && !a.Done, "neither a whole answer nor one error")
	return a
}

// served asks and fails the scenario unless the whole answer came.
func (r *run) served() gatewaytest.Answer {
	a := r.ask()
	r.must(a.Status == 200 && a.Error == "" && len(strings.Fields(a.Text)) == tokens, "not served: status %d, error %q, %d tokens", a.Status, a.Error, len(strings.Fields(a.Text)))
	return a
}

func by(a gatewaytest.Answer) string { return a.Header.Get("X-Omniroute-Provider") }

// tokens is the length of every answer.
const tokens = 60

func text(p lab.Prompt) string { return said(p.Provider) }

// said is an answer; alike is for providers that answer in the same words.
func said(who string) string {
	words := make([]string, tokens)
	for i := range words {
		words[i] = fmt.Sprintf("%s%d", who, i)
	}
	return strings.Join(words, " ")
}

func alike(lab.Prompt) string { return said("word") }

// labs returns both providers, at a usual pace or in a hurry.
func labs(hurry bool) []lab.Options {
	pace := lab.Latency{FirstContent: lab.Delay{Median: 400 * time.Millisecond}, Gap: lab.Delay{Median: 20 * time.Millisecond}}
	if hurry {
		pace = lab.Latency{Gap: lab.Delay{Median: time.Millisecond}}
	}
	return []lab.Options{
		{Name: "first", Seed: 1, Keys: map[string]string{"secret-1": "k1"}, Text: text, Latency: pace},
		{Name: "second", Seed: 2, Keys: map[string]string{"secret-2": "k2"}, Text: text, Latency: pace},
	}
}

// scripted is an upstream that streams an answer with a pause in it and may keep the connection
// open after the finish reason.
type scripted struct {
	pauseAfter int
	pause      time.Duration
	open       bool // no [DONE], and the connection stays
}

func (s scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	chunk := func(delta, finish, more string) {
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"small","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]%s}`+"\n\n", delta, finish, more)
		rc.Flush()
	}
	for i := range tokens {
		if i == s.pauseAfter {
			time.Sleep(s.pause)
		}
		chunk(fmt.Sprintf(`"content":"first%d "`, i), "null", "")
		time.Sleep(20 * time.Millisecond)
	}
	chunk("", `"stop"`, `,"usage":{"prompt_tokens":5,"completion_tokens":60,"total_tokens":65}`)
	if s.open {
		<-r.Context().Done()
		return
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
