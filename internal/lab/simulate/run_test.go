package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/internal/lab"
)

// two is a configuration of a primary with two accounts and a fallback.
const two = `
  providers:
    primary: {dialect: openai, base_url: "https://p.example/v1", connections: [{id: a, api_key: "${A}"}, {id: b, api_key: "${B}"}]}
    fallback: {dialect: openai, base_url: "https://f.example/v1", connections: [{id: a, api_key: x}]}
  combos:
    chat: {strategy: priority, targets: [primary/m, fallback/m]}
`

// play runs a schedule over two, of which the rest is given.
func play(t *testing.T, rest string) *Report {
	t.Helper()
	f, err := Parse("test.yaml", []byte("config: |"+two+rest))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Run()
	if err != nil {
		t.Fatal(err)
	}
	if waited := r.Answered + r.Failed + r.Broken + r.Left; waited != r.Requests {
		t.Errorf("%d requests, and %d of them came to some end", r.Requests, waited)
	}
	sum := 0
	for _, x := range r.Targets {
		sum += x.Attempts
	}
	if sum != r.Attempts {
		t.Errorf("%d attempts in all, %d on the targets", r.Attempts, sum)
	}
	return r
}

func (r *Report) target(name string) TargetReport {
	for _, x := range r.Targets {
		if x.Key().String() == name {
			return x
		}
	}
	return TargetReport{}
}

const outage = `
length: 3m
traffic: [{model: chat, rate: 20}]
upstreams: {primary: {events: [{from: 1m, to: 2m, answer: "500"}]}}
`

func TestOutage(t *testing.T) {
	t.Parallel()
	r := play(t, outage)
	if r.Perfect != 1 {
		t.Errorf("%v answered, want all: %v", r.Perfect, r.Causes)
	}
	if n := r.target("fallback/a/m").Answered; n < 1000 || n > 1300 {
		t.Errorf("the fallback answered %d, want those of about a minute", n)
	}
	if len(r.Troubles) != 1 {
		t.Fatalf("%d troubles, want one", len(r.Troubles))
	}
	x := r.Troubles[0]
	if x.SwitchMS == nil || *x.SwitchMS > 2000 || x.ReturnMS == nil || *x.ReturnMS > 15000 || x.Wasted == 0 || x.Wasted > 60 {
		t.Errorf("away in %v, back in %v, %d wasted", after(x.SwitchMS), after(x.ReturnMS), x.Wasted)
	}
	if len(r.Exclusions) == 0 || r.Exclusions[0].Layer != "breaker" || r.Exclusions[0].ToMS-r.Exclusions[0].FromMS < 55_000 {
		t.Errorf("the longest exclusions are %+v, want the breaker's first", r.Exclusions)
	}
}

// The same seed gives the same bytes, another seed others.
func TestRepeatable(t *testing.T) {
	t.Parallel()
	written := func(seed string) string {
		var b bytes.Buffer
		r := play(t, outage+seed)
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if err := r.WriteHTML(&b); err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(&b).Encode(r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := written("")
	if written("seed: 1\n") != first {
		t.Error("two runs of one seed differ")
	}
	if written("seed: 2\n") == first {
		t.Error("another seed gives the same")
	}
}

// Jitter is drawn from the seed like everything else.
func TestRepeatableWithJitter(t *testing.T) {
	t.Parallel()
	limited := "\n  resilience: {cooldown: {jitter: 1}}\nlength: 5m\ntraffic: [{model: chat, rate: 20}]\nupstreams: {primary: {events: [{answer: \"429-no-hint\"}]}}\n"
	first := play(t, limited)
	if d := cmp.Diff(first.Timeline, play(t, limited).Timeline); d != "" {
		t.Errorf("two runs of one seed differ:\n%s", d)
	}
	if first.Attempts == first.Requests {
		t.Error("nothing was excluded")
	}
}

// Every fault of the demo does something to a plain and to a streamed request, and is answered by
// the fallback or is no failure.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	for _, info := range lab.Faults() {
		for _, stream := range []int{0, 1} {
			r := play(t, fmt.Sprintf("\nlength: 20s\ntraffic: [{model: chat, rate: 5, stream: %d}]\nupstreams: {primary: {events: [{answer: %q}]}}\n", stream, info.Name))
			late := stream == 1 && (r.Broken > 0)
			switch info.Name {
			case "400": // the client's own fault
				if r.Answered != 0 {
					t.Errorf("%s: %d answered", info.Name, r.Answered)
				}
			default:
				if r.Answered == 0 && !late {
					t.Errorf("%s, stream %d: nobody was answered: %v", info.Name, stream, r.Causes)
				}
			}
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := play(t, `
length: 10m
traffic: [{model: chat, rate: 2, arrivals: even}]
upstreams: {primary: {limits: [{requests: 30, every: 1m}]}}
`)
	if r.Perfect != 1 {
		t.Errorf("%v answered, want all", r.Perfect)
	}
	for _, c := range []string{"a", "b"} {
		x := r.target("primary/" + c + "/m")
		if x.Answered < 250 || x.Answered > 310 || x.Wasted > 20 {
			t.Errorf("account %s: %+v, want some 30 a minute and about one refusal for each", c, x)
		}
	}
}

// A wait of many hours is stated, and honoured up to its cap.
func TestLongLimit(t *testing.T) {
	t.Parallel()
	r := play(t, `
length: 3h
traffic: [{model: chat, rate: 0.1, arrivals: even}]
upstreams: {primary: {limits: [{requests: 100, every: 24h}]}}
`)
	if x := r.target("primary/a/m"); r.Perfect != 1 || x.Answered != 100 || x.Wasted < 10 || x.Wasted > 30 {
		t.Errorf("%v answered; the first account: %+v, want 100 answers and a refusal every ten minutes", r.Perfect, x)
	}
}

// Where headers tell what is left, no account is asked beyond its limit.
func TestHeadroom(t *testing.T) {
	t.Parallel()
	r := play(t, `
length: 10m
traffic: [{model: chat, rate: 2, arrivals: even}]
upstreams: {primary: {limits: [{requests: 30, every: 1m, headers: true}]}}
`)
	if r.Perfect != 1 || r.Wasted != 0 {
		t.Errorf("%v answered, %d attempts wasted: %+v", r.Perfect, r.Wasted, r.Targets)
	}
	if a, b := r.target("primary/a/m").Answered, r.target("primary/b/m").Answered; a < 250 || b < 250 {
		t.Errorf("the accounts answered %d and %d, want some 30 a minute each", a, b)
	}
}

// Nodes that share what they know waste in an outage about what one wastes.
func TestNodes(t *testing.T) {
	t.Parallel()
	wasted := func(more string) int {
		r := play(t, strings.Replace(outage, "rate: 20", "rate: 100", 1)+more)
		if r.Perfect != 1 {
			t.Errorf("%v answered", r.Perfect)
		}
		return r.Wasted
	}
	one, apart, shared := wasted(""), wasted("nodes: 10\n"), wasted("nodes: 10\nshared: true\n")
	t.Logf("one node wastes %d attempts, ten %d, ten that share %d", one, apart, shared)
	if apart < 4*one || shared > 2*one {
		t.Errorf("one node wastes %d attempts, ten %d, ten that share %d", one, apart, shared)
	}
}

func TestClientsThatLeave(t *testing.T) {
	t.Parallel()
	r := play(t, `
length: 1m
traffic: [{model: chat, rate: 10, leave: 0.5, patience: 100ms}]
`)
	if share := ratio(r.Left, r.Requests); share < 0.4 || share > 0.6 {
		t.Errorf("%d of %d left, want half", r.Left, r.Requests)
	}
	if r.Perfect != 1 || r.Wasted != 0 {
		t.Errorf("%v answered, %d wasted: those that left count against nobody", r.Perfect, r.Wasted)
	}
}

func TestPlacesAreWaitedFor(t *testing.T) {
	t.Parallel()
	f, err := Parse("test.yaml", []byte(`
config: |
  providers:
    only: {dialect: openai, base_url: "https://o.example/v1", connections: [{id: a, api_key: x, max_concurrent: 2}]}
length: 1m
traffic: [{model: only/m, rate: 0.4, arrivals: even}]
upstreams: {only: {first: 1s, speed: 100}}
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Perfect != 1 || r.Wasted != 0 {
		t.Errorf("%v answered, %d wasted, want that all wait in line", r.Perfect, r.Wasted)
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	r := play(t, `
length: 2m
traffic: [{model: chat, rate: 5}]
upstreams: {primary: {events: [{from: 1m, to: 2m, slow: 4}]}}
`)
	if before, then := r.Timeline[30], r.Timeline[90]; then.FirstP99 < 2*before.FirstP99 {
		t.Errorf("first content p99 %v ms before and %v ms while it is four times slower", before.FirstP99, then.FirstP99)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	good := "config: |" + two + "length: 1m\ntraffic: [{model: chat, rate: 1}]\n"
	for want, src := range map[string]string{
		"length":                   "config: |" + two + "traffic: [{model: chat, rate: 1}]\n",
		"nobody asks":              "config: |" + two + "length: 1m\n",
		"needs the gateway's":      "length: 1m\ntraffic: [{model: chat, rate: 1}]\n",
		"cannot be read":           "config: nowhere.yaml\nlength: 1m\n",
		"no duration":              strings.Replace(good, "1m", "soon", 1),
		"unknown field":            good + "nodez: 2\n",
		"chit":                     strings.Replace(good, "model: chat", "model: chit/x/y", 1),
		"rate":                     strings.Replace(good, "rate: 1", "rate: 0", 1),
		"no provider \"nobody\"":   good + "upstreams: {nobody: {capacity: 1}}\n",
		"no fault \"501\"":         good + "upstreams: {primary: {events: [{answer: \"501\"}]}}\n",
		"no connection \"z\"":      good + "upstreams: {primary: {events: [{answer: \"500\", connection: z}]}}\n",
		"either an answer":         good + "upstreams: {primary: {events: [{from: 10s}]}}\n",
		"begins at 50s":            good + "upstreams: {primary: {events: [{from: 50s, to: 10s, answer: \"500\"}]}}\n",
		"above the bound":          strings.Replace(good, "rate: 1}", "rate: 900000}", 1),
		"neither random nor even":  strings.Replace(good, "rate: 1}", "rate: 1, arrivals: odd}", 1),
		"share":                    strings.Replace(good, "rate: 1}", "rate: 1, stream: 2}", 1),
		"nobody to share with":     good + "shared: true\n",
		"add shared: true":         good + "nodes: 2\npropagation: 1s\n",
		"from 10ms":                good + "nodes: 2\nshared: true\npropagation: 1ms\n",
		"none of connection":       good + "upstreams: {primary: {limits: [{requests: 1, per: planet}]}}\n",
		"configuration is not goo": strings.Replace(good, "dialect: openai", "dialect: klingon", 1),
	} {
		_, err := Parse("test.yaml", []byte(src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant an error with %q", err, want)
		}
	}
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0: time.Millisecond, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := h.quantile(q); got < want*97/100 || got > want*103/100 {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	for b := range len(h.counts) {
		if v := value(b); v > 0 && v < 1000*time.Hour && bucket(v) != b {
			t.Fatalf("the middle of bucket %d, %v, is in bucket %d", b, v, bucket(v))
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	f, err := Load("../../../examples/regional-outage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.Length, f.Traffic[0].To, f.Traffic[0].Rate = Duration(25*time.Minute), Duration(25*time.Minute), 2
	c, err := f.Compare("testdata/fallback.yaml", "testdata/alone.yaml", 3)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if row := c.Rows[0]; row.Name != "answered" || row.Worse != 3 || row.Mean[0] != 100 || row.Mean[1] > 90 {
		t.Errorf("without a fallback an outage should cost answers in all seeds:\n%s", &b)
	}
}
