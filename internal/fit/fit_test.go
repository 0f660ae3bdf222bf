package fit

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

var now = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

func ask(n failover.Needs) *failover.Ask {
	return &failover.Ask{Bytes: 4 * n.Input, Estimate: func() failover.Needs { return n }}
}

func TestLacks(t *testing.T) {
	t.Parallel()
	small := Can{Window: 32000, MaxOutput: 4096, NoImages: true, NoTools: true, NoSchema: true}
	cases := []struct {
		name string
		can  Can
		ask  failover.Needs
		want string // "" when it can
		kind resilience.Kind
	}{
		{"nothing is known", Can{}, failover.Needs{Input: 1e7, Output: 1e6, Images: true, Tools: true, Schema: true}, "", 0},
		{"it fits", small, failover.Needs{Input: 20000, Output: 4096}, "", 0},
		{"an estimate may be wrong", small, failover.Needs{Input: 41000}, "", 0},
		{"too long", small, failover.Needs{Input: 42000}, "window 32000", resilience.KindContextLength},
		{"answers", small, failover.Needs{Output: 4097}, "at most 4096", resilience.KindInvalidRequest},
		{"images", small, failover.Needs{Images: true}, "images", resilience.KindInvalidRequest},
		{"tools", small, failover.Needs{Tools: true}, "tools", resilience.KindInvalidRequest},
		{"schema", small, failover.Needs{Schema: true}, "schema", resilience.KindInvalidRequest},
	}
	for _, c := range cases {
		var m Model
		m.Set(c.can)
		got, kind := m.Lacks(ask(c.ask), now)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || kind != c.kind {
			t.Errorf("%s: %q (%v), want %q (%v)", c.name, got, kind, c.want, c.kind)
		}
	}
}

// TestAGlanceSpares: a request that plainly fits is not read.
func TestAGlanceSpares(t *testing.T) {
	t.Parallel()
	var m Model
	m.Set(Can{Window: 32000, MaxOutput: 4096, NoImages: true})
	a := &failover.Ask{Bytes: 1000, Look: func() failover.Needs { return failover.Needs{Output: 100} },
		Estimate: func() failover.Needs { t.Error("it was read"); return failover.Needs{} }}
	if got, _ := m.Lacks(a, now); got != "" {
		t.Error(got)
	}
}

// TestRefusalsTeach: the limit that a refusal names, else the size of what was refused; for an hour,
// and until an answer shows that it is wrong.
func TestRefusalsTeach(t *testing.T) {
	t.Parallel()
	lacks := func(m *Model, n int64, at time.Time) bool {
		what, kind := m.Lacks(ask(failover.Needs{Input: n}), at)
		if what != "" && kind != resilience.KindContextLength {
			t.Errorf("kind %v", kind)
		}
		return what != ""
	}
	var m Model
	m.Refused(ask(failover.Needs{Input: 9000}), 8192, now)
	if m.Window(now) != 8192 || !lacks(&m, 9000, now) || lacks(&m, 8900, now) {
		t.Errorf("window %d", m.Window(now))
	}
	if m.Window(now.Add(learnedLife)) != 0 || lacks(&m, 9000, now.Add(learnedLife)) {
		t.Error("it is never forgotten")
	}
	var blind Model
	blind.Refused(ask(failover.Needs{Input: 50000}), 0, now)
	blind.Refused(ask(failover.Needs{Input: 40000}), 0, now)
	blind.Refused(ask(failover.Needs{Input: 60000}), 0, now)
	if !lacks(&blind, 40000, now) || lacks(&blind, 39999, now) || blind.Window(now) != 0 {
		t.Error("what was refused does not bound what is sent")
	}
	blind.Refused(ask(failover.Needs{Input: 10}), 0, now)
	blind.Refused(ask(failover.Needs{Input: 300}), 32000, now) // for the answer that it asked for
	if !lacks(&blind, 40000, now) || lacks(&blind, 39999, now) || blind.Window(now) != 32000 {
		t.Error("a short prompt was taken for too long a one")
	}
	blind.Took(ask(failover.Needs{Input: 45000}), now)
	if lacks(&blind, 45000, now) {
		t.Error("an answer has taught nothing")
	}
}

func TestSaid(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]int64{
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.": 128000,
		"prompt is too long: 210000 tokens > 200000 maximum":                                                      200000,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":                 1048576,
		"the request exceeds the available context size (4096 tokens)":                                            4096,
		"This model supports a context window of 32k tokens":                                                      32000,
		"maximum context length is 1,047,576 tokens":                                                              1047576,
		"input length and max_tokens exceed context limit: 190000 + 20000 > 200000":                               0,
		"please reduce the length of the messages":                                                                0,
		"maximum context length is 3 tokens":                                                                      0,
		"context length is unlimited":                                                                             0,
	} {
		if got := Said(message); got != want {
			t.Errorf("%q: %d, want %d", message, got, want)
		}
	}
}

// TestSaidOfRealAnswers reads refusals for length that were seen: a number that is read is one that a
// window can be.
func TestSaidOfRealAnswers(t *testing.T) {
	t.Parallel()
	const corpus = "../../../shared/corpus/provider-errors.jsonl"
	f, err := os.Open(corpus)
	if err != nil {
		t.Skipf("the corpus of real answers is not here: %v", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	told, all := 0, 0
	for lines.Scan() {
		var c struct {
			ID, Body string
			Expect   struct{ Kind string }
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Expect.Kind != "context_length" {
			continue
		}
		all++
		n := Said(c.Body)
		if n > 0 {
			told++
		}
		if n != 0 && (n < 1000 || n > 3e6) {
			t.Errorf("%s: %d of %s", c.ID, n, c.Body)
		}
		t.Logf("%s: %d", c.ID, n)
	}
	if told*3 < all*2-3 {
		t.Errorf("%d of %d refusals tell a limit", told, all)
	}
}

func FuzzSaid(f *testing.F) {
	f.Add("maximum context length is 1,2,3")
	f.Add("> 99999999999999999999 maximum")
	f.Fuzz(func(t *testing.T, message string) {
		if n := Said(message); n != 0 && (n < 256 || n > 1e9) {
			t.Errorf("%q: %d", message, n)
		}
	})
}
