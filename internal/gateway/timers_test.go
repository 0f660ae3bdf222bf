package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

// allTimers has a different value for each timer, so that a story tells them apart.
const allTimers = "connect_timeout: 3s, first_token_timeout: 20s, answer_timeout: 30s, idle_timeout: 10s, stall_timeout: 25s, deadline: 2m, max_attempts: 1"

// TestTimers has one upstream for each timer. It is armed when the request is sent, is named in
// the evidence, and counts against the upstream.
func TestTimers(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, _ func(), r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		u      raw
		stream bool
		after  time.Duration
		want   string // in the evidence
		status int
	}{
		"no answer to a stream": {hang, true, 20 * time.Second, "first_token_timeout of 20s ran out (headers)", 504},
		"no answer to another":  {hang, false, 30 * time.Second, "answer_timeout of 30s ran out (headers)", 504},
		"headers do not reset it": {func(w http.ResponseWriter, flush func(), r *http.Request) {
			time.Sleep(15 * time.Second)
			flush()
			hang(w, flush, r)
		}, true, 20 * time.Second, "first_token_timeout of 20s ran out (first-event)", 504},
		"pings and roles do not reset it": {func(w http.ResponseWriter, flush func(), r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, ": keep-alive\n\n"+role+gap)
				flush()
				time.Sleep(time.Second)
			}
		}, true, 20 * time.Second, "first_token_timeout of 20s ran out (first-event)", 504},
		"half an answer": {func(w http.ResponseWriter, flush func(), r *http.Request) {
			io.WriteString(w, `{"id":"c",`)
			flush()
			hang(w, flush, r)
		}, false, 30 * time.Second, "answer_timeout of 30s ran out (body)", 504},
		"silence after content": {func(w http.ResponseWriter, flush func(), r *http.Request) {
			time.Sleep(5 * time.Second)
			io.WriteString(w, hello+gap)
			flush()
			hang(w, flush, r)
		}, true, 15 * time.Second, "idle_timeout of 10s ran out (mid-stream)", 200},
		"pings after content": {func(w http.ResponseWriter, flush func(), r *http.Request) {
			io.WriteString(w, hello+gap)
			for r.Context().Err() == nil {
				io.WriteString(w, ": ping\n\n")
				flush()
				time.Sleep(time.Second)
			}
		}, true, 25 * time.Second, "stall_timeout of 25s ran out (mid-stream)", 200},
		"a refusal whose body does not come": {func(w http.ResponseWriter, flush func(), r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			flush()
			hang(w, flush, r)
		}, true, 5 * time.Second, "", 503},
	} {
		t.Run(name, func(t *testing.T) {
			rawWorld(t, allTimers, c.u, nil, func(t *testing.T, w *gatewaytest.World) {
				start := time.Now()
				a := w.Chat(t.Context(), "m", c.stream)
				if took := time.Since(start).Round(time.Millisecond); took != c.after || a.Status != c.status || a.Error == "" || a.Done || a.Wrong != "" {
					t.Errorf("after %v (want %v): %+v", took, c.after, a)
				}
				s := w.Stories()[0]
				if v := s.Attempts[0].Verdict; !strings.Contains(v.Evidence, c.want) || v.Scope.String() != "provider" {
					t.Errorf("verdict %v, evidence %q, want %q", v, v.Evidence, c.want)
				}
				if n := w.Engine.Status().Providers[0].Breaker.Failures; n != 1 {
					t.Errorf("%d failures count against the upstream, want 1", n)
				}
			})
		})
	}
}

// TestConnectTimeout has an upstream that drops packets.
func TestConnectTimeout(t *testing.T) {
	rawWorld(t, allTimers, says(""), nil, func(t *testing.T, w *gatewaytest.World) {
		w.Listeners["u"].SetDialing(lab.DialSilent)
		start := time.Now()
		a := w.Chat(t.Context(), "m", true)
		if took := time.Since(start); took != 3*time.Second || a.Status != 504 {
			t.Errorf("after %v: %+v", took, a)
		}
		if v := w.Stories()[0].Attempts[0].Verdict; !v.Dial || v.Kind.String() != "timeout" {
			t.Errorf("verdict %+v", v)
		}
	})
}

// TestDeadline: it ends what waits, what streams, and what its client does not read, and counts
// against nobody.
func TestDeadline(t *testing.T) {
	t.Parallel()
	const short = "deadline: 30500ms, first_token_timeout: 60s, idle_timeout: 60s"
	clean := func(t *testing.T, w *gatewaytest.World) {
		t.Helper()
		for _, p := range w.Engine.Status().Providers {
			if p.Breaker.Failures != 0 || p.Connections[0].State != "ready" {
				t.Errorf("our own deadline changed %+v", p)
			}
		}
	}
	t.Run("waiting", func(t *testing.T) {
		rawWorld(t, short, raw(func(_ http.ResponseWriter, _ func(), r *http.Request) { <-r.Context().Done() }), nil, func(t *testing.T, w *gatewaytest.World) {
			start := time.Now()
			a := w.Chat(t.Context(), "m", true)
			if took := time.Since(start); took != 30500*time.Millisecond || a.Status != 504 || a.Error != "deadline_exceeded" {
				t.Errorf("after %v: %+v", took, a)
			}
			clean(t, w)
		})
	})
	endless := raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, hello+gap)
			flush()
			time.Sleep(time.Second)
		}
	})
	t.Run("streaming", func(t *testing.T) {
		rawWorld(t, short, endless, nil, func(t *testing.T, w *gatewaytest.World) {
			start := time.Now()
			a := w.Chat(t.Context(), "m", true)
			if took := time.Since(start); took != 30500*time.Millisecond || a.Done || a.Error != "deadline_exceeded" || a.Events != 32 {
				t.Errorf("after %v: %+v", took, a)
			}
			clean(t, w)
		})
	})
	t.Run("a client that does not read", func(t *testing.T) {
		rawWorld(t, short, flood, nil, func(t *testing.T, w *gatewaytest.World) {
			resp := ask(t, w, `{"model":"m","stream":true}`)
			defer resp.Body.Close()
			time.Sleep(36 * time.Second) // the deadline and the time for last words
			synctest.Wait()
			if s := w.Stories(); len(s) != 1 || !strings.Contains(s[0].Broke, "slowly") || s[0].Duration != 35500*time.Millisecond {
				t.Errorf("stories %+v", s)
			}
			clean(t, w)
		})
	})
}

// flood sends content as fast as it is taken.
var flood = raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, hello+gap); err != nil {
			return
		}
	}
})

func ask(t *testing.T, w *gatewaytest.World, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// TestSlowClient: a client that stops reading holds the upstream back, which is nobody's failure
// however long it lasts, and nothing is lost.
func TestSlowClient(t *testing.T) {
	var sent atomic.Int64
	u := raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
		for range 20000 {
			n, _ := io.WriteString(w, hello+gap)
			flush()
			sent.Add(int64(n))
		}
		io.WriteString(w, finish+gap+done+gap)
	})
	rawWorld(t, "idle_timeout: 10s, stall_timeout: 20s", u, nil, func(t *testing.T, w *gatewaytest.World) {
		resp := ask(t, w, `{"model":"m","stream":true}`)
		defer resp.Body.Close()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		// Two connections with 64 KiB each way, and what the servers and clients hold themselves.
		if n := sent.Load(); n > 256<<10 {
			t.Errorf("the upstream could send %d KiB to a client that reads nothing", n>>10)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || len(body) != 20000*len(hello+gap)+len(finish+gap+done+gap) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		synctest.Wait()
		if s := w.Stories(); len(s) != 1 || s[0].Attempts[0].Outcome != "answered" {
			t.Errorf("stories %+v", s)
		}
	})
}

// TestNoTerminatorFinishesSoon: an upstream that says why it stopped and then keeps the connection
// open does not keep the client.
func TestNoTerminatorFinishesSoon(t *testing.T) {
	t.Parallel()
	for name, pings := range map[string]bool{"silent": false, "with pings": true} {
		t.Run(name, func(t *testing.T) {
			u := raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
				io.WriteString(w, hello+gap+finish+gap)
				flush()
				time.Sleep(2 * time.Second)
				io.WriteString(w, usage+gap)
				flush()
				for r.Context().Err() == nil {
					if time.Sleep(time.Second); pings {
						io.WriteString(w, ": ping\n\n")
						flush()
					}
				}
			})
			rawWorld(t, "", u, nil, func(t *testing.T, w *gatewaytest.World) {
				start := time.Now()
				a := w.Chat(t.Context(), "m", true)
				if took := time.Since(start); took > 8*time.Second || !a.Done || a.Error != "" || a.Finish != "stop" || !strings.Contains(a.Body, usage) {
					t.Errorf("after %v: %+v", took, a)
				}
				if s := w.Stories()[0]; s.Usage.Output != 5 || s.Attempts[0].Outcome != "answered" {
					t.Errorf("story %+v", s)
				}
			})
		})
	}
}

// TestChoicesOneAfterAnother: the end of the first choice is not the end of the answer.
func TestChoicesOneAfterAnother(t *testing.T) {
	second := strings.NewReplacer(`"index":0`, `"index":1`)
	u := raw(func(w http.ResponseWriter, flush func(), _ *http.Request) {
		for _, ev := range []string{hello, finish, second.Replace(hello), second.Replace(hello), second.Replace(hello), second.Replace(finish), done} {
			io.WriteString(w, ev+gap)
			flush()
			time.Sleep(3 * time.Second)
		}
	})
	rawWorld(t, "", u, nil, func(t *testing.T, w *gatewaytest.World) {
		a := w.Chat(t.Context(), "m", true)
		if a.Text != "hellohellohellohello" || !a.Done || a.Error != "" {
			t.Errorf("%+v", a)
		}
	})
}

// TestRedirectsAreNotFollowed: a key goes nowhere but where the configuration says.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Int32
	u := raw(func(w http.ResponseWriter, _ func(), r *http.Request) {
		http.Redirect(w, r, "http://v/v1/chat/completions", http.StatusTemporaryRedirect)
	})
	v := raw(func(http.ResponseWriter, func(), *http.Request) { followed.Add(1) })
	rawWorld(t, "max_attempts: 1", u, v, func(t *testing.T, w *gatewaytest.World) {
		a := w.Chat(t.Context(), "m", false)
		if a.Status < 500 || a.Header.Get("Location") != "" || followed.Load() != 0 {
			t.Errorf("followed %d times; %+v", followed.Load(), a)
		}
	})
}
