package simulate

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// priced are two providers of one account each, of which the second costs twice as much.
const priced = `
config: |
  providers:
    p: {dialect: openai, base_url: "https://p.example/v1", models: [{id: m, price: {input: 1, output: 10}}], connections: [{id: a, api_key: x}]}
    f: {dialect: openai, base_url: "https://f.example/v1", models: [{id: m, price: {input: 2, output: 20}}], connections: [{id: a, api_key: x}]}
  combos:
    chat: {strategy: priority, targets: [p/m, f/m]}
length: 100s
traffic: [{model: chat, rate: 1, arrivals: even, prompt_tokens: 1000, output_tokens: 100}]
upstreams:
  p: {first: 500ms, speed: 100, refusal: 100ms, events: [TROUBLE]}
  f: {first: 500ms, speed: 100}
`

func run(t *testing.T, src string) *Report {
	t.Helper()
	f, err := Parse("test.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Run()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near4(a, b float64) bool { return math.Abs(a-b) < 1e-4 }

// TestByHand checks every figure of a case that is small enough to be worked out on paper. Requests come at
// 1s, 2s, … 99s. Those before 30s are answered by p, after 0.5s and for $0.002. The one at 30s finds the
// key revoked, 100ms later f answers it, and since the account then is out for 15 minutes f answers all
// others, for $0.004 each.
func TestByHand(t *testing.T) {
	t.Parallel()
	r := run(t, strings.Replace(priced, "TROUBLE", "{from: 30s, to: 60s, answer: key-revoked}", 1))
	if r.Requests != 99 || r.Answered != 99 || r.Perfect != 1 || r.Failed+r.Broken+r.Left != 0 {
		t.Errorf("%d requests, %d answered", r.Requests, r.Answered)
	}
	if r.Attempts != 100 || r.Wasted != 1 {
		t.Errorf("%d attempts, %d wasted; want 100 and 1", r.Attempts, r.Wasted)
	}
	if r.Added.P99 != 0 || r.Added.Max != 100 || r.First.Max != 600 || math.Abs(r.First.P50-500) > 10 {
		t.Errorf("time added %+v, first content %+v; want 0 and 500, and of one request 100 and 600", r.Added, r.First)
	}
	if want := 29*.002 + 70*.004; !near4(r.Cost, want) || r.CostWasted != 0 || r.Unpriced != 0 {
		t.Errorf("it costs %v, %v of it wasted; want %v and nothing: a refusal costs nothing", r.Cost, r.CostWasted, want)
	}
	phases := [][5]float64{}
	for _, p := range r.Phases {
		phases = append(phases, [5]float64{float64(p.Requests), float64(p.Answered), float64(p.Attempts), float64(p.Wasted), math.Round(p.Cost*1e4) / 1e4})
	}
	if want := [][5]float64{{29, 29, 29, 0, .058}, {30, 30, 31, 1, .12}, {40, 40, 40, 0, .16}}; !slices.Equal(phases, want) {
		t.Errorf("before, during and after are %v, want %v", phases, want)
	}
	x := r.Troubles[0]
	if x.SwitchMS == nil || *x.SwitchMS != 100 || x.ReturnMS != nil || x.Wasted != 1 {
		t.Errorf("away in %v, back in %v, %d wasted; want 100ms, never and 1", after(x.SwitchMS), after(x.ReturnMS), x.Wasted)
	}
	if len(r.Exclusions) != 1 || r.Exclusions[0] != (Exclusion{Layer: "connection", Key: "p/a", Kind: "auth", FromMS: 30_100, ToMS: 100_000, Open: true}) {
		t.Errorf("out: %+v", r.Exclusions)
	}
	second := r.Timeline[30]
	if second.Requests != 1 || second.Answered != 1 || second.Attempts != 2 || second.Wasted != 1 || second.By["f"] != 1 || !near4(second.Cost, .004) {
		t.Errorf("second 30 is %+v", second)
	}
}

// An answer that breaks off costs its prompt and what there is of it, and is lost money.
func TestCostOfWhatBreaksOff(t *testing.T) {
	t.Parallel()
	r := run(t, strings.Replace(strings.Replace(priced, "TROUBLE", `{answer: "cut:10"}`, 1), "[p/m, f/m]", "[p/m]", 1))
	// Half of 100 tokens at $10 a million and 1000 at $1.
	if want := .0015 * float64(r.Broken); r.Broken == 0 || !near4(r.Cost, want) || !near4(r.CostWasted, want) {
		t.Errorf("%d broken answers cost %v, %v of it wasted; want %v", r.Broken, r.Cost, r.CostWasted, want)
	}
}

// Whoever leaves after a second has had half of the answer, and who leaves before it begins pays the prompt.
func TestCostOfWhoLeaves(t *testing.T) {
	t.Parallel()
	for patience, want := range map[string]float64{"1s": .0015, "100ms": .001} {
		r := run(t, strings.NewReplacer("TROUBLE", "", "output_tokens: 100", "output_tokens: 100, leave: 1, patience: "+patience).Replace(priced))
		if r.Left != 99 || !near4(r.Cost, 99*want) || r.CostWasted != 0 {
			t.Errorf("%d left after %s, for %v; want 99 for %v", r.Left, patience, r.Cost, 99*want)
		}
	}
}

func TestUnpriced(t *testing.T) {
	t.Parallel()
	r := play(t, outage)
	if r.Cost != 0 || r.Unpriced == 0 || !strings.HasPrefix(r.bill(), "not known") {
		t.Errorf("%v, %d without a price: %s", r.Cost, r.Unpriced, r.bill())
	}
}

// Traffic that does not leave a trouble was never away from it, and that a share of the attempts fails is no
// sign that it was.
func TestAway(t *testing.T) {
	t.Parallel()
	for trouble, want := range map[string]string{
		`{from: 30s, to: 60s, share: 0.1, answer: content-filter}`: "never",
		`{from: 30s, to: 60s, slow: 2}`:                            "never",
		`{from: 30s, to: 30500ms, answer: key-revoked}`:            "never", // it is over before the next request
		`{from: 30s, to: 60s, answer: key-revoked}`:                "100ms",
	} {
		r := run(t, strings.Replace(priced, "TROUBLE", trouble, 1))
		if got := after(r.Troubles[0].SwitchMS); got != want {
			t.Errorf("%s: away in %s, want %s", trouble, got, want)
		}
	}
}

// Whether a target came back can only be told where it had answered before and the run goes on after the trouble.
func TestBack(t *testing.T) {
	t.Parallel()
	for trouble, want := range map[string]string{
		`{to: 30s, answer: "500"}`:                                        "-", // nothing came before it
		`{from: 30s, answer: "500"}`:                                      "-",
		`{answer: key-revoked, to: 20s}, {from: 30s, to: 60s, slow: 2}`:   "-", // nothing was answered before either
		`{from: 30s, to: 60s, answer: key-revoked}`:                       "never",
		`{from: 30s, to: 60s, slow: 2}, {from: 70s, answer: key-revoked}`: "0",
	} {
		r := run(t, strings.Replace(priced, "TROUBLE", trouble, 1))
		for _, x := range r.Troubles {
			if got := x.Back(); got != want {
				t.Errorf("%s: %s is back in %s, want %s", trouble, x.What, got, want)
			}
			want = "-"
		}
	}
}

// A trouble of what is never asked, as of a model whose name is mistyped, is told apart from one that was left at once.
func TestUnmet(t *testing.T) {
	t.Parallel()
	r := run(t, strings.Replace(priced, "TROUBLE", `{from: 30s, to: 60s, answer: "500", model: n}, {from: 30s, to: 60s, answer: "500", model: m}`, 1))
	if x := r.Troubles[0]; !x.Unmet || x.SwitchMS != nil || x.Away() != "-" || x.Back() != "-" || x.Name() != "p/n: 500 (not met)" {
		t.Errorf("%+v", x)
	}
	quiet := run(t, strings.NewReplacer("TROUBLE", `{from: 30s, to: 60s, answer: "500"}`, "rate: 1,", "rate: 1, to: 20s,").Replace(priced))
	if x := quiet.Troubles[0]; x.Away() != "-" || x.Back() != "-" {
		t.Errorf("away in %s and back in %s, although nobody came", x.Away(), x.Back())
	}
	if x := r.Troubles[1]; x.Unmet || x.SwitchMS == nil || x.Name() != "p/m: 500" {
		t.Errorf("%+v", x)
	}
}

// What share of no request was answered, and what models without a price cost, is not written as a number.
func TestNoNumberForWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	r := run(t, strings.NewReplacer("TROUBLE", `{to: 30s, answer: "500"}`, "models: [{id: m, price: {input: 1, output: 10}}], ", "",
		"models: [{id: m, price: {input: 2, output: 20}}], ", "").Replace(priced))
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`\nbefore +0 +- +0 .* -\n`, `\nafter +70 +100.000% +70 .* -\n`} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// In days the grain is coarser, and what is seen through it is the same.
func TestLongRun(t *testing.T) {
	t.Parallel()
	if got := grain(24 * time.Hour); got != 100*time.Millisecond {
		t.Errorf("a day has a grain of %v", got)
	}
	r := run(t, strings.NewReplacer("length: 100s", "length: 96h", "rate: 1,", "rate: 0.01,", "TROUBLE", "{from: 30h, to: 60h, answer: key-revoked}").Replace(priced))
	x := r.Troubles[0]
	if x.SwitchMS == nil || *x.SwitchMS > 200_000 || x.ReturnMS == nil || *x.ReturnMS > 20*60_000 {
		t.Errorf("away in %v, back in %v", after(x.SwitchMS), after(x.ReturnMS))
	}
}
