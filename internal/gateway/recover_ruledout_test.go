package gateway_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
	"omniroute/internal/telemetry"
)

// What no other attempt may go on with ends with an error event as ever, and the story says why.
func TestRecoveryRuledOut(t *testing.T) {
	t.Parallel()
	tool := `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"city":{"type":"string"},"street":{"type":"string"}}}}}],`
	for _, c := range []struct {
		name, more, why string
		fault           lab.Fault
	}{
		{"several answers", `"n":2,`, "n ", lab.Cut(6, lab.CutReset)},
		{"probabilities", `"logprobs":true,`, "logprobs", lab.Cut(6, lab.CutReset)},
		{"half a tool call", tool, "cannot go on with", lab.Cut(2, lab.CutReset)},
		{"a hole in the text", "", "missing in the text", lab.All(lab.BadEvent(4), lab.Cut(6, lab.CutFIN))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := gatewaytest.New(t, strings.ReplaceAll(recoverConfig, "PREFILL", "plain"),
					lab.Options{Name: "p", Keys: map[string]string{"secret-p": "k1"}, Text: recoverText(true)},
					lab.Options{Name: "q", Keys: map[string]string{"secret-q": "k2"}, Text: recoverText(true)})
				w.Providers["p"].SetFault(lab.First(1, c.fault))
				a := w.Post(t.Context(), "/v1/chat/completions", `{"model":"c","stream":true,`+c.more+`"messages":[{"role":"user","content":"hi"}]}`)
				if a.Status != 200 || a.Wrong != "" || a.Error == "" || a.Done {
					t.Errorf("%d %s, error %q, done %v\n%s", a.Status, a.Wrong, a.Error, a.Done, a.Body)
				}
				synctest.Wait()
				s := w.Stories()[0]
				if s.Recovery == nil || s.Recovery.Outcome != telemetry.NotAttempted || !strings.Contains(s.Recovery.Why, c.why) || len(s.Attempts) != 1 || s.Broke == "" {
					t.Errorf("%+v, %d attempts", s.Recovery, len(s.Attempts))
				}
			})
		})
	}
}
