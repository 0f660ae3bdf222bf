package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
	"omniroute/internal/telemetry"
)

// voice is how far the answers to one question differ.
type voice int

const (
	fickle  voice = iota // with every call
	steady               // with the key; the same when asked again
	unanime              // not at all
)

// word is the n-th word of an answer.
func (v voice) word(p lab.Prompt, n int) string {
	who, call := p.Provider+"-"+p.Connection, p.Call
	if v == unanime {
		who = "all-all"
	}
	if v != fickle {
		call = 0
	}
	return fmt.Sprintf("%s-%d-%d", who, call, n)
}

// randomPrefill draws how a model treats the beginning of an answer, and whether it says the same
// again.
func randomPrefill(rnd *rand.Rand) lab.Fault {
	switch rnd.IntN(8) {
	case 0:
		return lab.NoPrefill()
	case 1:
		return lab.EchoPrefill()
	case 2:
		return lab.SwallowSpace()
	case 3:
		return lab.Reword(rnd.IntN(20))
	case 4:
		return lab.Sometimes(0.5, lab.Reword(rnd.IntN(20)))
	}
	return lab.Fault{}
}

// listen reads an answer word by word: they come in order, from the one who began it, and where a
// recovery may have been from one other behind that. It returns which word would be next, and how
// many were missing between others.
func (v voice) listen(a gatewaytest.Answer, goneOn bool) (next, dropped int, why string) {
	words := strings.Fields(a.Text)
	if strings.Join(words, " ") != strings.TrimSuffix(a.Text, " ") {
		return 0, 0, "a bad seam: " + a.Text
	}
	began := a.Header.Get("X-Omniroute-Provider") + "-" + a.Header.Get("X-Omniroute-Connection")
	if keptAlive(a) && len(words) > 0 { // the headers came too early to name the target
		if began != "-" {
			return 0, 0, "a target is named that was not known yet"
		}
		began = strings.Join(strings.Split(strings.TrimPrefix(words[0], "re"), "-")[:2], "-")
	}
	if v == unanime {
		began = "all-all"
	}
	who, call, others := began, -1, 0
	for i, word := range words {
		plain := strings.TrimPrefix(word, "re") // in other words
		parts := strings.Split(plain, "-")
		var c, n int
		if len(parts) != 4 {
			return 0, 0, "half a word: " + word
		}
		if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "%d %d", &c, &n); err != nil {
			return 0, 0, "half a word: " + word
		}
		speaker := parts[0] + "-" + parts[1]
		if call < 0 {
			call = c
		}
		if i == 0 && speaker != began {
			return 0, 0, "a word of somebody else: " + word
		}
		if speaker != who || c != call {
			if others++; others > 1 || !goneOn {
				return 0, 0, "two answers in one: " + word
			}
			who, call = speaker, c
		}
		switch {
		case n < next:
			return 0, 0, "word again: " + word
		case n > next:
			dropped += n - next // an event that did not parse is dropped (law S4)
		}
		next = n + 1
	}
	return next, dropped, ""
}

// goneOnWith reports whether another model went on with an answer from its beginning, in its own
// words. One that says it again has to use the same.
func goneOnWith(w *gatewaytest.World, a gatewaytest.Answer) bool {
	for _, s := range w.Stories() {
		if s.ID == a.Header.Get("X-Request-Id") {
			return s.Recovery != nil && s.Recovery.Way == "prefill"
		}
	}
	return false
}

// recoveries counts what became of answers that broke off, to see that the plans have some of each
// kind.
type recoveries struct {
	mu sync.Mutex
	n  map[telemetry.Recovery]int
}

func (r *recoveries) count(stories []telemetry.Story) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range stories {
		if s.Recovery == nil {
			continue
		}
		if r.n == nil {
			r.n = map[telemetry.Recovery]int{}
		}
		r.n[telemetry.Recovery{Outcome: s.Recovery.Outcome, Way: s.Recovery.Way}]++
	}
}

func (r *recoveries) check(t *testing.T, all bool) {
	t.Logf("recoveries: %v", r.n)
	for _, want := range []telemetry.Recovery{
		{Outcome: telemetry.Recovered, Way: "prefill"}, {Outcome: telemetry.Recovered, Way: "restart"},
		{Outcome: telemetry.NotRecovered},
	} {
		if all && r.n[want] == 0 {
			t.Errorf("no plan had %+v", want)
		}
	}
}
