package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
)

// What is said in these plans: of one text every break is within a character, an escape or a word
// somewhere.
const (
	planText  = "Grüße, 世界! 😀 \"quoted\" \\ back\n\n  line\ttab / <b>&amp; \u2028 é e\u0301 👨‍👩‍👧 and the quick brown fox jumps over the lazy dog; fin."
	otherText = "Something else altogether, in other words: the text of somebody who was not asked before, ever."
)

// speaker is an upstream of one dialect that fails in one way.
type speaker struct {
	dialect, name string
	text          string
	fault, on     string // what happens to its answers, and what it makes of the beginning of one
	at, size      int    // after how many events, of how many characters each
	times         int64  // how often, for ever if 0
	pure          bool   // escapes everything beyond ASCII
	calls         atomic.Int64
}

var (
	speakerBreaks = []string{"", "", "status", "fault", "hang", "empty", "cut", "cut", "cut", "end", "end", "half", "stall", "stall", "garbage"}
	speakerOns    = []string{"go on", "go on", "go on", "refuse", "repeat", "else", "fault"}
)

func randomSpeaker(rnd *rand.Rand, dialect, name string) *speaker {
	s := &speaker{dialect: dialect, name: name, text: planText, fault: speakerBreaks[rnd.IntN(len(speakerBreaks))],
		on: speakerOns[rnd.IntN(len(speakerOns))], at: rnd.IntN(30), size: 1 + rnd.IntN(7), times: int64(rnd.IntN(3)), pure: rnd.IntN(2) == 0}
	if rnd.IntN(4) == 0 {
		s.text = otherText
	}
	return s
}

// begun returns the beginning of an answer at the end of a request, where there is one.
func begun(body []byte) (string, bool) {
	type turn struct {
		Role           string
		Content, Parts json.RawMessage
	}
	var q struct{ Messages, Contents []turn }
	_ = json.Unmarshal(body, &q)
	turns := slices.Concat(q.Messages, q.Contents)
	if len(turns) == 0 {
		return "", false
	}
	last := turns[len(turns)-1]
	var text string
	if last.Role != "assistant" && last.Role != "model" {
		return "", false
	}
	if json.Unmarshal(last.Content, &text) == nil {
		return text, true
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(append(append([]byte{}, last.Content...), last.Parts...), &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text, true
}

// restOf is what a text goes on with: a model may be given the beginning of another one's.
func restOf(before string) string {
	for _, text := range []string{planText, otherText} {
		if rest, ok := strings.CutPrefix(text, before); ok {
			return rest
		}
	}
	return "a beginning that nobody has said: " + before
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n := s.calls.Add(1)
	text, fault := s.text, s.fault
	if s.times > 0 && n > s.times {
		fault = ""
	}
	if before, ok := begun(body); ok {
		text = restOf(before)
		switch s.on {
		case "refuse", "fault":
			fault = s.on
		case "repeat":
			text = before + text
		case "else":
			// Behind a bracket, say, nobody could tell this from what a model may go on with.
			if last := before[len(before)-1]; 'a' <= last && last <= 'z' {
				text = "Certainly! " + s.text
			}
		}
	}
	out := http.NewResponseController(w)
	number, said := 0, ""
	t := tongues[s.dialect]
	say := func(events, piece string) {
		said += piece
		events = strings.NewReplacer("$T", s.quote(piece), "$A", s.quote(said), "$M", "m", "$ID", fmt.Sprintf("%s-%d", s.name, n)).Replace(events)
		for ; strings.Contains(events, "$N"); number++ {
			events = strings.Replace(events, "$N", fmt.Sprint(number), 1)
		}
		_, _ = io.WriteString(w, events)
		_ = out.Flush()
	}
	switch fault {
	case "status":
		http.Error(w, `{"error":{"message":"boom"}}`, http.StatusInternalServerError)
		return
	case "refuse":
		http.Error(w, `{"error":{"message":"REFUSED","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_ = out.Flush() // whatever comes now is not sent again for a dead connection
	if fault == "hang" {
		<-r.Context().Done()
		return
	}
	say(t.start, "")
	if fault == "empty" {
		return
	}
	rest := []rune(text)
	for i := 0; len(rest) > 0; i++ {
		piece := string(rest[:min(s.size, len(rest))])
		if i == s.at {
			switch fault {
			case "cut":
				panic(http.ErrAbortHandler)
			case "end":
				return
			case "half":
				whole := strings.Replace(t.text, "$T", s.quote(piece), 1)
				_, _ = io.WriteString(w, whole[:len(whole)/2])
				return
			case "stall":
				<-r.Context().Done()
				return
			case "fault":
				say(t.fault, "")
				return
			case "garbage":
				_, _ = io.WriteString(w, "data: {\"broken\": \n\n")
			}
		}
		say(t.text, piece)
		rest = rest[len([]rune(piece)):]
		time.Sleep(5 * time.Millisecond)
	}
	if fault == "fault" { // at the latest
		say(t.fault, "")
		return
	}
	say(t.finish, "")
	say(t.done, "")
}

// quote writes a JSON string, one way or the other.
func (s *speaker) quote(text string) string {
	b, _ := json.Marshal(text)
	if !s.pure {
		return string(b)
	}
	var out strings.Builder
	for _, r := range string(b) {
		switch {
		case r < 0x80:
			out.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return out.String()
}

// TestRandomFaultPlansOfDialects has a thousand plans of clients of any dialect and two upstreams of
// any. Whatever fails: the client gets the exact whole text and one end, or the exact beginning of it
// and one error, in order, under one name; and every call upstream is in a story.
func TestRandomFaultPlansOfDialects(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	met := map[string]int{}
	all := eachPlan(t, func(t *testing.T, seed uint64) {
		runDialectPlan(t, seed, func(what string) {
			mu.Lock()
			defer mu.Unlock()
			met[what]++
		})
	})
	t.Cleanup(func() {
		t.Logf("met: %v", met)
		for _, what := range []string{"whole", "error", "recovered prefill", "recovered restart", "failed"} {
			if all && met[what] == 0 {
				t.Errorf("no plan had %s", what)
			}
		}
	})
}

func runDialectPlan(t *testing.T, seed uint64, count func(string)) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	all := []string{"openai", "anthropic", "responses", "gemini"}
	client, first, second := all[rnd.IntN(4)], all[rnd.IntN(4)], all[rnd.IntN(4)]
	p, q := randomSpeaker(rnd, first, "p"), randomSpeaker(rnd, second, "q")
	options := []string{"", "recover: continue", "recover: continue", "recover: continue", "recover: continue, keepalive: 1s, hedge: {after: 2s, budget: 100%}", "keepalive: 2s"}
	option := options[rnd.IntN(len(options))]
	conf := fmt.Sprintf(`
store: "memory:"
providers:
  p: {dialect: %s, base_url: "$p", prefill: %s, connections: [{id: k, api_key: kp}]}
  q: {dialect: %s, base_url: "$q", prefill: %s, connections: [{id: k, api_key: kq}]}
relay: {first_token_timeout: 20s, idle_timeout: 15s, stall_timeout: 30s, deadline: 3m}
combos: {c: {targets: [p/m, q/m], %s}}
`, first, []string{"plain", "none"}[rnd.IntN(2)], second, []string{"plain", "none"}[rnd.IntN(2)], option)
	setup := gatewaytest.Setup{Config: conf, Handlers: map[string]http.Handler{"p": p, "q": q}}
	if rnd.IntN(2) == 0 {
		setup.Wrap = func(c net.Conn) net.Conn {
			return &chopped{Conn: c, rnd: rand.New(rand.NewPCG(seed, 4))}
		}
	}
	w := gatewaytest.Start(t, setup)
	t1 := tongues[client]
	for range 2 {
		a := w.Post(t.Context(), strings.Replace(t1.path, "$M", "c", 1), strings.Replace(t1.ask, "$M", "c", 1))
		why := ""
		h := heard{errors: 1}
		if a.Err != nil {
			why = a.Err.Error()
		} else if a.Status == http.StatusOK {
			h = hear(client, a.Body)
		}
		whole := h.text == planText || h.text == otherText
		begins := strings.HasPrefix(planText, h.text) || strings.HasPrefix(otherText, h.text)
		switch {
		case why != "":
		case h.wrong != "":
			why = h.wrong
		case strings.Contains(a.Body, "REFUSED"):
			why = "the refusal of a continuation is shown"
		case h.ends+h.errors != 1:
			why = fmt.Sprintf("%d ends and %d errors", h.ends, h.errors)
		case h.ends == 1 && !whole:
			why = "an end of what is not the whole"
		case !begins:
			why = "a text that nobody has said"
		}
		if why != "" {
			t.Errorf("plan %d, %s from %s and %s, %s: %s\np: %s %s at %d, q: %s %s at %d\n%d %s", seed, client, first, second, option, why,
				p.fault, p.on, p.at, q.fault, q.on, q.at, a.Status, a.Body)
		}
		count([]string{"whole", "error"}[h.errors])
	}
	synctest.Wait()
	told := int64(0)
	for _, s := range w.Stories() {
		told += int64(len(s.Attempts))
		if s.Recovery != nil {
			count(strings.TrimSpace(fmt.Sprint(s.Recovery.Outcome, " ", s.Recovery.Way)))
		}
	}
	if calls := p.calls.Load() + q.calls.Load(); calls != told {
		t.Errorf("plan %d: %d calls upstream, %d attempts in stories", seed, calls, told)
	}
}
