package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/failover"
	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
	"omniroute/internal/telemetry"
)

const recoverConfig = `
store: "memory:"
providers:
  p: {base_url: "$p", prefill: PREFILL, connections: [{id: k1, api_key: secret-p}], models: [m]}
  q: {base_url: "$q", prefill: PREFILL, connections: [{id: k2, api_key: secret-q}], models: [m]}
relay: {first_token_timeout: 20s, idle_timeout: 15s, stall_timeout: 30s, deadline: 3m}
combos:
  c: {strategy: priority, recover: continue, targets: [p/m, q/m]}
  alone: {recover: continue, targets: [p/m]}
  off: {strategy: priority, targets: [p/m, q/m]}
`

// recoverText is twenty words: the provider's own, or everybody's with sameWords.
func recoverText(same bool) func(lab.Prompt) string {
	return func(p lab.Prompt) string {
		name := p.Provider
		if same {
			name = "w"
		}
		words := make([]string, 20)
		for i := range words {
			words[i] = fmt.Sprintf("%s%d", name, i)
		}
		return strings.Join(words, " ")
	}
}

func words(name string, from, to int) string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("%s%d", name, i))
	}
	return strings.Join(list, " ")
}

// TestRecovery has an answer break off after six of twenty words, by its first attempt (law S8).
func TestRecovery(t *testing.T) {
	t.Parallel()
	boom := lab.Error{Type: "server_error", Message: "boom"}
	cut := lab.Cut(6, lab.CutReset)
	later := func(first, then lab.Fault) lab.Fault { return lab.Sequence(first, then, then, then, then) }
	for _, c := range []struct {
		name    string
		prefill bool // the models are asked to go on
		same    bool // both providers answer in the same words
		model   string
		p, q    lab.Fault
		// text is the whole answer; broke is a part of the error where there is none.
		text, broke string
		tried       []string // the attempts
		way         string
		outcome     telemetry.RecoveryOutcome
	}{
		{name: "the same target goes on", prefill: true, p: lab.First(1, cut),
			text: words("p", 0, 20), tried: []string{"p failed", "p answered"}, way: "prefill", outcome: telemetry.Recovered},
		{name: "the same target says it again", p: lab.First(1, cut),
			text: words("p", 0, 20), tried: []string{"p failed", "p answered"}, way: "restart", outcome: telemetry.Recovered},
		{name: "after a stall", prefill: true, p: lab.First(1, lab.Stall(6, time.Second)),
			text: words("p", 0, 20), tried: []string{"p failed", "p answered"}, way: "prefill", outcome: telemetry.Recovered},
		{name: "after silence", p: lab.First(1, lab.Stall(6, 0)),
			text: words("p", 0, 20), tried: []string{"p failed", "p answered"}, way: "restart", outcome: telemetry.Recovered},
		{name: "after an error event", prefill: true, p: lab.First(1, lab.ErrorEvent(6, boom)),
			text: words("p", 0, 20), tried: []string{"p failed", "p answered"}, way: "prefill", outcome: telemetry.Recovered},
		{name: "after an end without a finish reason", prefill: true, p: lab.First(1, lab.All(lab.Cut(6, lab.CutQuiet), lab.NoFinish())),
			text: words("p", 0, 20), tried: []string{"p failed", "p answered"}, way: "prefill", outcome: telemetry.Recovered},
		{name: "the next target goes on in its words", prefill: true, p: later(cut, lab.ServerError()),
			text: words("p", 0, 6) + " " + words("q", 6, 20), tried: []string{"p failed", "p failed", "q answered"}, way: "prefill", outcome: telemetry.Recovered},
		{name: "the next target says it again", same: true, p: later(cut, lab.ServerError()),
			text: words("w", 0, 20), tried: []string{"p failed", "p failed", "q answered"}, way: "restart", outcome: telemetry.Recovered},
		{name: "a refusal of the beginning is followed by a restart", prefill: true, p: later(cut, lab.NoPrefill()),
			text: words("p", 0, 20), tried: []string{"p failed", "p failed", "p answered"}, way: "restart", outcome: telemetry.Recovered},
		{name: "a lost space too", prefill: true, p: later(cut, lab.SwallowSpace()),
			text: words("p", 0, 20), tried: []string{"p failed", "p failed", "p answered"}, way: "restart", outcome: telemetry.Recovered},
		{name: "a beginning that is repeated is taken out", prefill: true, p: later(cut, lab.EchoPrefill()),
			text: words("p", 0, 20), tried: []string{"p failed", "p answered"}, way: "prefill", outcome: telemetry.Recovered},
		{name: "nobody says it again exactly", p: later(cut, lab.Reword(3)),
			text: words("p", 0, 6) + " ", broke: "broke off", tried: []string{"p failed", "p failed", "q failed"}, outcome: telemetry.NotRecovered},
		{name: "an empty answer is no end", prefill: true, p: later(cut, lab.NoContent()),
			text: words("p", 0, 6) + " " + words("q", 6, 20), tried: []string{"p failed", "p failed", "p failed", "q answered"}, way: "prefill", outcome: telemetry.Recovered},
		{name: "cut again before anything new", p: later(cut, lab.Cut(3, lab.CutFIN)), same: true,
			text: words("w", 0, 20), tried: []string{"p failed", "p failed", "q answered"}, way: "restart", outcome: telemetry.Recovered},
		{name: "never twice", p: later(cut, lab.Cut(9, lab.CutFIN)), same: true,
			text: words("w", 0, 9) + " ", broke: "broke off", tried: []string{"p failed", "p failed"}, way: "restart", outcome: telemetry.NotRecovered},
		{name: "all fail: the original cause", p: later(lab.ErrorEvent(6, boom), lab.Refuse(lab.Error{Status: 400, Type: "invalid_request_error", Message: "no"})), q: lab.ServerError(),
			text: words("p", 0, 6) + " ", broke: "boom", tried: []string{"p failed", "p failed", "q failed"}, outcome: telemetry.NotRecovered},
		{name: "a refusal of everything is not shown", prefill: true, model: "alone", p: later(cut, lab.All(lab.NoPrefill(), lab.Reword(0))),
			text: words("p", 0, 6) + " ", broke: "broke off", tried: []string{"p failed", "p failed", "p failed"}, outcome: telemetry.NotRecovered},
		{name: "silence of the one that should go on is bounded", model: "alone", p: later(cut, lab.Hang()),
			text: words("p", 0, 6) + " ", broke: "broke off", tried: []string{"p failed", "p failed"}, outcome: telemetry.NotRecovered},
		{name: "and so is silence before the seam", model: "alone", p: later(cut, lab.Stall(3, 0)),
			text: words("p", 0, 6) + " ", broke: "broke off", tried: []string{"p failed", "p failed"}, outcome: telemetry.NotRecovered},
		{name: "off", model: "off", prefill: true, p: lab.First(1, cut), text: words("p", 0, 6) + " ", broke: "broke off", tried: []string{"p failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				prefill := "none"
				if c.prefill {
					prefill = "plain"
				}
				pace := lab.Latency{FirstContent: lab.Delay{Median: 300 * time.Millisecond}, Gap: lab.Delay{Median: 20 * time.Millisecond}}
				w := gatewaytest.New(t, strings.ReplaceAll(recoverConfig, "PREFILL", prefill),
					lab.Options{Name: "p", Keys: map[string]string{"secret-p": "k1"}, Text: recoverText(c.same), Latency: pace},
					lab.Options{Name: "q", Keys: map[string]string{"secret-q": "k2"}, Text: recoverText(c.same), Latency: pace})
				w.Providers["p"].SetFault(c.p)
				w.Providers["q"].SetFault(c.q)
				model := c.model
				if model == "" {
					model = "c"
				}
				start := time.Now()
				a := w.Post(t.Context(), "/v1/chat/completions", `{"model":"`+model+`","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`)
				if took := time.Since(start); took > 60*time.Second {
					t.Errorf("it took %v", took)
				}
				if a.Wrong != "" || a.Err != nil || a.Status != 200 || a.Text != c.text {
					t.Fatalf("%d %v %s, text %q\n%s", a.Status, a.Err, a.Wrong, a.Text, a.Body)
				}
				if whole := c.broke == ""; whole != (a.Error == "") || whole != a.Done || whole != (a.Finish == "stop") || whole != strings.Contains(a.Body, `"usage":{`) || !strings.Contains(a.Body, c.broke) {
					t.Errorf("error %q, done %v, finish %q\n%s", a.Error, a.Done, a.Finish, a.Body)
				}
				if strings.Contains(a.Body, "prefill") || strings.Count(a.Body, `"role":"assistant"`) != 1 {
					t.Errorf("the client sees the recovery:\n%s", a.Body)
				}
				if got := a.Header.Get("X-Omniroute-Provider") + a.Header.Get("X-Omniroute-Attempts"); got != "p1" {
					t.Errorf("headers of %s", got)
				}
				synctest.Wait()
				s := w.Stories()[0]
				var tried []string
				for i, rec := range s.Attempts {
					tried = append(tried, rec.Key.Provider+" "+string(rec.Outcome))
					if rec.Outcome == failover.OutcomeRunning || rec.Resumes != (i > 0) {
						t.Errorf("attempt %+v", rec)
					}
				}
				if fmt.Sprint(tried) != fmt.Sprint(c.tried) {
					t.Errorf("attempts %v, want %v\n%+v", tried, c.tried, s.Attempts)
				}
				rec := telemetry.Recovery{}
				if s.Recovery != nil {
					rec = *s.Recovery
				}
				if rec.Outcome != c.outcome || rec.Way != c.way || (s.Broke == "") != (c.broke == "") {
					t.Errorf("%+v, broke %q", rec, s.Broke)
				}
				sumsEqual(t, w)
			})
		})
	}
}
