package lab_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/lab"
)

// TestScript walks through a script on virtual time.
func TestScript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, lab.Options{
			Keys:   map[string]string{"ka": "a", "kb": "b"},
			Period: time.Minute,
			Script: []lab.Phase{
				{From: 40 * time.Second, To: 50 * time.Second, Match: lab.OnTarget("b", "m2")}, // the exception
				{From: 10 * time.Second, To: 20 * time.Second, Match: lab.OnConnection("a"), Fault: lab.RateLimited(lab.RetryAfter(time.Second))},
				{From: 30 * time.Second, To: 40 * time.Second, Match: lab.OnModel("m1"), Fault: lab.ModelNotFound()},
				{From: 40 * time.Second, Fault: lab.ServerError()},
			},
		})
		at := func() string {
			out := ""
			for _, target := range []struct{ key, model string }{{"ka", "m1"}, {"ka", "m2"}, {"kb", "m1"}, {"kb", "m2"}} {
				h.key = target.key
				r := h.ask(t.Context(), target.model, false)
				out += strings.Fields(http.StatusText(r.Status))[0] + " "
			}
			return out
		}
		start := time.Now()
		for _, c := range []struct {
			at   time.Duration
			want string
		}{
			{0, "OK OK OK OK "},
			{10 * time.Second, "Too Too OK OK "},
			{20 * time.Second, "OK OK OK OK "},
			{30 * time.Second, "Not OK Not OK "},
			{40 * time.Second, "Internal Internal Internal OK "},
			{50 * time.Second, "Internal Internal Internal Internal "},
			{60 * time.Second, "OK OK OK OK "},
			{75 * time.Second, "Too Too OK OK "},
		} {
			time.Sleep(time.Until(start.Add(c.at)))
			got := at()
			if got != c.want {
				t.Errorf("at %v: got %s, want %s", c.at, got, c.want)
			}
		}
		h.p.Restart()
		if got := at(); got != "OK OK OK OK " {
			t.Errorf("restarted: %s", got)
		}
		h.p.SetFault(lab.Overloaded())
		h.key = "ka"
		if r := h.ask(t.Context(), "m1", false); r.Status != 529 {
			t.Errorf("got %d", r.Status)
		}
		h.p.SetFault(lab.Fault{})
		if r := h.ask(t.Context(), "m1", false); r.Status != 200 {
			t.Errorf("got %d", r.Status)
		}
	})
}
