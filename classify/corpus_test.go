package classify

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"omniroute/resilience"
)

// corpusEntry is one answer with the verdict that it should get.
type corpusEntry struct {
	raw    []byte
	in     Input
	id     string
	Expect struct {
		Scope, Kind    string
		RetryElsewhere bool            `json:"retry_elsewhere"`
		RetrySame      bool            `json:"retry_same"`
		Terminal       bool            `json:"terminal"`
		RetryAfter     json.RawMessage `json:"retry_after_ms"`
	}
	Accept map[string][]json.RawMessage
}

// corpus reads the corpus in place. It stays outside this repository.
func corpus(tb testing.TB) []corpusEntry {
	tb.Helper()
	path := os.Getenv("OMNIROUTE_CORPUS")
	if path == "" {
		path = "../../shared/corpus/provider-errors.jsonl"
	}
	f, err := os.Open(path)
	if err != nil {
		tb.Skipf("no corpus at %s (set OMNIROUTE_CORPUS to its path): %v", path, err)
	}
	defer f.Close()
	var es []corpusEntry
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		line := slices.Clone(sc.Bytes())
		c, err := ParseLine(line, exampleNow)
		if err != nil {
			tb.Fatalf("corpus line %d: %v", len(es)+1, err)
		}
		e := corpusEntry{raw: line, in: c.Input, id: c.ID}
		if err := json.Unmarshal(line, &e); err != nil {
			tb.Fatal(err)
		}
		es = append(es, e)
	}
	if err := sc.Err(); err != nil {
		tb.Fatal(err)
	}
	return es
}

func (e *corpusEntry) accepts(key, got string) bool {
	for _, a := range e.Accept[key] {
		if strings.Trim(string(a), `"`) == got {
			return true
		}
	}
	return false
}

// wait returns the expected wait in milliseconds, NaN for none.
func (e *corpusEntry) wait() float64 {
	var at struct {
		ResetAt time.Time `json:"reset_at"`
	}
	var ms *float64
	if json.Unmarshal(e.Expect.RetryAfter, &ms) == nil {
		if ms == nil {
			return math.NaN()
		}
		return *ms
	}
	if json.Unmarshal(e.Expect.RetryAfter, &at) != nil {
		return math.NaN()
	}
	return float64(at.ResetAt.Sub(e.in.Now).Milliseconds())
}

func near(want, got float64) bool {
	if math.IsNaN(want) || math.IsNaN(got) {
		return math.IsNaN(want) == math.IsNaN(got)
	}
	return math.Abs(want-got) <= 1000
}

// disagreements are kinds of entries where another verdict is meant. They stay in the count.
var disagreements = []struct{ entries, why string }{
	{"a 401 whose whole message is \"Unauthorized\", and a web server's 401 page, marked as terminal",
		"the words only restate the status, and an unexplained 401 is a cooldown (V8); rechecks find out soon enough"},
	{"a quota of 0 that also states a short wait, with the wait expected",
		"a lock that lasts the stated time would end after seconds, over and over, for a model that can never answer; the wait is named in the evidence and dropped"},
	{"a request that the provider cancelled because its own client left, and a socket that reached its hour, with scope none",
		"none is a success and would close a breaker (V11); client is as neutral, and connection counts nothing alone"},
	{"a per-day limit of tokens whose bucket rolls and refills within ten minutes, called a quota",
		"a wait below the cap of rate limits is a rate limit; a quota would wait for its own base of minutes at least"},
	{"an aggregator whose own upstream account is out of money, called an overload",
		"billing at model scope says what is wrong and harms the key as little"},
}

type tally struct{ n, strict, tolerant, wait, terminal int }

func (t *tally) add(o tally) {
	t.n += o.n
	t.strict += o.strict
	t.tolerant += o.tolerant
	t.wait += o.wait
	t.terminal += o.terminal
}

// judge compares one verdict with what the corpus expects.
func (e *corpusEntry) judge(v resilience.Verdict) (t tally, problems []string) {
	t.n = 1
	r := NewResult(e.id, v, e.in.Now)
	scopeOK, kindOK := r.Scope == e.Expect.Scope, r.Kind == e.Expect.Kind
	if scopeOK && kindOK {
		t.strict = 1
	}
	if (scopeOK || e.accepts("scope", r.Scope)) && (kindOK || e.accepts("kind", r.Kind)) {
		t.tolerant = 1
	}
	if t.tolerant == 0 {
		problems = append(problems, "WRONG")
	} else if t.strict == 0 {
		problems = append(problems, "tolerated")
	}
	got := math.NaN()
	if r.RetryAfterMs != nil {
		got = float64(*r.RetryAfterMs)
	}
	t.wait = b2i(near(e.wait(), got))
	if t.wait == 0 {
		for _, a := range e.Accept["retry_after_ms"] {
			var ms *float64
			if json.Unmarshal(a, &ms) == nil {
				w := math.NaN()
				if ms != nil {
					w = *ms
				}
				if near(w, got) {
					t.wait = 1
				}
			}
		}
	}
	if t.wait == 0 {
		problems = append(problems, fmt.Sprintf("wait %v, want %v", got, e.wait()))
	}
	t.terminal = b2i(r.Quarantine == e.Expect.Terminal || e.accepts("terminal", fmt.Sprint(r.Quarantine)))
	if e.Expect.Scope != "connection" && e.Expect.Scope != "model" {
		t.terminal = 1
	}
	if t.terminal == 0 {
		problems = append(problems, fmt.Sprintf("terminal %v", r.Quarantine))
	}
	if r.RetrySame != e.Expect.RetrySame && !e.accepts("retry_same", fmt.Sprint(r.RetrySame)) {
		problems = append(problems, fmt.Sprintf("retry_same %v", r.RetrySame))
	}
	if r.RetryElse != e.Expect.RetryElsewhere && !e.accepts("retry_elsewhere", fmt.Sprint(r.RetryElse)) {
		problems = append(problems, fmt.Sprintf("retry_elsewhere %v", r.RetryElse))
	}
	return t, problems
}

func TestCorpus(t *testing.T) {
	es := corpus(t)
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var all tally
	byProvider, byKind, without := map[string]tally{}, map[string]tally{}, map[string]tally{}
	count := func(m map[string]tally, key string, one tally) {
		sum := m[key]
		sum.add(one)
		m[key] = sum
	}
	for i, e := range es {
		v := c.Classify(e.in)
		one, problems := e.judge(v)
		all.add(one)
		count(byProvider, e.in.Provider, one)
		count(byKind, e.Expect.Kind, one)
		if len(problems) > 0 && testing.Verbose() {
			t.Logf("#%d %s %d want %s/%s got %v/%v [%s] by %s: %s\n    %.200s", i, e.in.Provider, e.in.Status, e.Expect.Scope, e.Expect.Kind, v.Scope, v.Kind, strings.Join(problems, "; "), v.Rule, v.Evidence, e.in.Body)
		}
		if e.Expect.Scope == "none" && e.Expect.Kind == "unknown" && v.Scope != resilience.ScopeNone {
			t.Errorf("a healthy answer was misread: %v\n%s", v, e.in.Body)
		}
		anonymous := e.in
		anonymous.Provider = ""
		one, _ = e.judge(c.Classify(anonymous))
		count(without, e.in.Provider, one)
	}
	for _, d := range disagreements {
		t.Logf("disagreement: %s: %s", d.entries, d.why)
	}
	t.Log("\n" + table("provider", byProvider, all))
	t.Log("\n" + table("kind", byKind, all))
	var rest tally
	for _, w := range without {
		rest.add(w)
	}
	t.Log("\nwithout the provider's own rules\n" + table("provider", without, rest))
	guard := func(what string, part int, least float64) {
		if got := float64(part) / float64(all.n); got < least {
			t.Errorf("%s agreement is %.2f%%, and must be at least %.1f%%", what, 100*got, 100*least)
		}
	}
	guard("strict scope and kind", all.strict, 0.97)
	guard("tolerant scope and kind", all.tolerant, 0.995)
	guard("retry-after", all.wait, 0.99)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func table(head string, rows map[string]tally, sum tally) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tn\tstrict\ttolerant\tretry-after\tterminal\t\n", head)
	line := func(name string, r tally) {
		pct := func(n int) string { return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(r.n)) }
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t\n", name, r.n, pct(r.strict), pct(r.tolerant), pct(r.wait), pct(r.terminal))
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		line(name, rows[name])
	}
	line("all", sum)
	w.Flush()
	return b.String()
}
