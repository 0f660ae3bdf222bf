package headroom

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// headers reads "name: value" lines into canonical headers.
func headers(lines string) http.Header {
	h := http.Header{}
	for line := range strings.Lines(lines) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return h
}

func read(h http.Header) []Reading {
	var r Readings
	r.Read(h, now)
	out := slices.Clone(r.All())
	for i := range out {
		out[i].refused = false
	}
	slices.SortFunc(out, func(a, b Reading) int {
		if c := strings.Compare(a.Label, b.Label); c != 0 {
			return c
		}
		return int(a.Unit) - int(b.Unit)
	})
	return out
}

// TestReadings has the headers of every family.
func TestReadings(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		headers string
		want    []Reading
	}{
		"openai": {`
			x-ratelimit-limit-requests: 10000
			x-ratelimit-limit-tokens: 30000
			x-ratelimit-remaining-requests: 9999
			x-ratelimit-remaining-tokens: 11950
			x-ratelimit-reset-requests: 6ms
			x-ratelimit-reset-tokens: 6m0s`,
			[]Reading{
				{Label: "Requests", Limit: 10000, Remaining: 9999, Wait: 6 * time.Millisecond, Refills: true},
				{Label: "Tokens", Unit: Tokens, Limit: 30000, Remaining: 11950, Wait: 6 * time.Minute, Refills: true},
			}},
		"groq": {`
			x-ratelimit-limit-requests: 14400
			x-ratelimit-remaining-requests: 0
			x-ratelimit-reset-requests: 3h5m45.6s`,
			[]Reading{{Label: "Requests", Limit: 14400, Remaining: 0, Wait: 3*time.Hour + 5*time.Minute + 45600*time.Millisecond, Refills: true}}},
		"azure without a reset, and a number that it does not know": {`
			x-ratelimit-remaining-requests: 59
			x-ratelimit-limit-tokens: -1
			x-ratelimit-remaining-tokens: -1
			x-ratelimit-reset-tokens: 0`,
			[]Reading{{Label: "Requests", Limit: -1, Remaining: 59, Wait: -1}}},
		"cerebras by minute and day": {`
			x-ratelimit-limit-requests-day: 14400
			x-ratelimit-remaining-requests-day: 14000
			x-ratelimit-reset-requests-day: 43200.0
			x-ratelimit-limit-tokens-minute: 60000
			x-ratelimit-remaining-tokens-minute: 0
			x-ratelimit-reset-tokens-minute: 20.0`,
			[]Reading{
				{Label: "Requests-Day", Limit: 14400, Remaining: 14000, Wait: 12 * time.Hour},
				{Label: "Tokens-Minute", Unit: Tokens, Limit: 60000, Remaining: 0, Wait: 20 * time.Second},
			}},
		"mistral": {`
			x-ratelimit-limit-req-minute: 60
			x-ratelimit-remaining-req-minute: 59
			x-ratelimitbysize-limit-minute: 500000
			x-ratelimitbysize-remaining-minute: 499000
			ratelimitbysize-reset: 31`,
			[]Reading{
				{Label: "Minute", Unit: Tokens, Limit: 500000, Remaining: 499000, Wait: -1},
				{Label: "Req-Minute", Limit: 60, Remaining: 59, Wait: -1},
			}},
		"the word in the end": {`
			x-ratelimit-minute-limit: 25
			x-ratelimit-minute-remaining: 3
			x-ratelimit-minute-reset: 1767607207`,
			[]Reading{{Label: "Minute", Reach: Unsaid, Limit: 25, Remaining: 3, Wait: 7 * time.Second}}},
		"openrouter in milliseconds": {`
			X-RateLimit-Limit: 20
			X-RateLimit-Remaining: 0
			X-RateLimit-Reset: 1767607207000`,
			[]Reading{{Reach: Unsaid, Limit: 20, Remaining: 0, Wait: 7 * time.Second}}},
		"together": {`
			x-ratelimit-limit: 60
			x-ratelimit-remaining: 59
			x-ratelimit-reset: 3
			x-tokenlimit-limit: 1000
			x-tokenlimit-remaining: 10`,
			[]Reading{
				{Reach: Unsaid, Limit: 60, Remaining: 59, Wait: 3 * time.Second},
				{Unit: Tokens, Reach: Unsaid, Limit: 1000, Remaining: 10, Wait: -1},
			}},
		"fireworks": {`
			x-ratelimit-limit-tokens-prompt: 60000
			x-ratelimit-remaining-tokens-prompt: 59000
			x-ratelimit-limit-tokens-generated: 6000
			x-ratelimit-remaining-tokens-generated: 5900`,
			[]Reading{
				{Label: "Tokens-Generated", Unit: OutputTokens, Limit: 6000, Remaining: 5900, Wait: -1},
				{Label: "Tokens-Prompt", Unit: InputTokens, Limit: 60000, Remaining: 59000, Wait: -1},
			}},
		"github": {`
			x-ratelimit-limit-requests: 50
			x-ratelimit-remaining-requests: 0
			x-ratelimit-type: UserByModelByDay
			x-ratelimit-timeremaining: 33127`,
			[]Reading{{Label: "Requests", Limit: 50, Remaining: 0, Wait: -1}}},
		"anthropic, by the clock of the upstream": {`
			date: Mon, 05 Jan 2026 12:30:00 GMT
			anthropic-ratelimit-requests-limit: 50
			anthropic-ratelimit-requests-remaining: 0
			anthropic-ratelimit-requests-reset: 2026-01-05T12:30:12Z
			anthropic-ratelimit-input-tokens-limit: 30000
			anthropic-ratelimit-input-tokens-remaining: 30000
			anthropic-ratelimit-input-tokens-reset: 2026-01-05T12:30:00Z
			anthropic-ratelimit-output-tokens-limit: 8000
			anthropic-ratelimit-output-tokens-remaining: 7000
			anthropic-ratelimit-output-tokens-reset: 2026-01-05T14:30:08+02:00`,
			[]Reading{
				{Label: "Input-Tokens", Unit: InputTokens, Limit: 30000, Remaining: 30000, Wait: 0, Refills: true},
				{Label: "Output-Tokens", Unit: OutputTokens, Limit: 8000, Remaining: 7000, Wait: 8 * time.Second, Refills: true},
				{Label: "Requests", Limit: 50, Remaining: 0, Wait: 12 * time.Second, Refills: true},
			}},
		"a plan with a window that is used up": {`
			anthropic-ratelimit-unified-status: rejected
			anthropic-ratelimit-unified-reset: 1767607260
			anthropic-ratelimit-unified-representative-claim: five_hour
			anthropic-ratelimit-unified-5h-status: rejected
			anthropic-ratelimit-unified-5h-utilization: 1.0
			anthropic-ratelimit-unified-5h-reset: 1767607260
			anthropic-ratelimit-unified-7d-status: allowed
			anthropic-ratelimit-unified-7d-utilization: 0.42
			anthropic-ratelimit-unified-7d-reset: 1768000000
			anthropic-ratelimit-unified-overage-status: rejected`,
			[]Reading{
				{Label: "5h", Unit: Share, Reach: OfAccount, Limit: 1000, Remaining: 0, Wait: time.Minute},
				{Label: "7d", Unit: Share, Reach: OfAccount, Limit: 1000, Remaining: 580, Wait: 392800 * time.Second},
			}},
		"a plan's class of models": {`
			anthropic-ratelimit-unified-status: rejected
			anthropic-ratelimit-unified-7d_opus-status: rejected
			anthropic-ratelimit-unified-7d_opus-utilization: 1
			anthropic-ratelimit-unified-7d_opus-reset: 1767607260`,
			[]Reading{{Label: "7d_opus", Class: "opus", Unit: Share, Reach: OfAccount, Limit: 1000, Remaining: 0, Wait: time.Minute}}},
		"a plan, only over all": {`
			anthropic-ratelimit-unified-status: rejected
			anthropic-ratelimit-unified-reset: 1767607260
			anthropic-ratelimit-unified-representative-claim: seven_day_opus`,
			[]Reading{{Class: "opus", Unit: Share, Reach: OfAccount, Limit: 1000, Remaining: 0, Wait: time.Minute}}},
		"a plan that is used up and served by what was bought beside it": {`
			anthropic-ratelimit-unified-status: allowed
			anthropic-ratelimit-unified-5h-status: rejected
			anthropic-ratelimit-unified-5h-utilization: 1.0
			anthropic-ratelimit-unified-5h-reset: 1767607260`,
			[]Reading{{Label: "5h", Unit: Share, Reach: OfAccount, Limit: 1000, Remaining: 1, Wait: time.Minute}}},
		"codex": {`
			x-codex-primary-used-percent: 100
			x-codex-primary-reset-after-seconds: 60
			x-codex-primary-window-minutes: 300
			x-codex-secondary-used-percent: 25.5`,
			[]Reading{
				{Label: "Codex-Primary", Unit: Share, Reach: OfAccount, Limit: 1000, Remaining: 0, Wait: time.Minute},
				{Label: "Codex-Secondary", Unit: Share, Reach: OfAccount, Limit: 1000, Remaining: 745, Wait: -1},
			}},
		"draft, with its policy": {`
			ratelimit: "burst";r=50;t=30, "day";r=0
			ratelimit-policy: "burst";q=100;w=60, "day";q=1000;w=86400`,
			[]Reading{
				{Label: "burst", Reach: Unsaid, Limit: 100, Remaining: 50, Wait: 30 * time.Second},
				{Label: "day", Reach: Unsaid, Limit: 1000, Remaining: 0, Wait: -1},
			}},
		"a draft of one bucket": {"ratelimit: limit=100, remaining=40, reset=7",
			[]Reading{{Reach: Unsaid, Limit: 100, Remaining: 40, Wait: 7 * time.Second}}},
		"the older draft": {`
			ratelimit-limit: 100, 100;w=60
			ratelimit-remaining: 0
			ratelimit-reset: 7`,
			[]Reading{{Reach: Unsaid, Limit: 100, Remaining: 0, Wait: 7 * time.Second}}},
		"nothing is told": {"content-type: text/plain\nretry-after: 7\nx-ratelimit-over-limit: yes", []Reading{}},
		"nonsense": {`
			x-ratelimit-remaining-requests: lots
			x-ratelimit-reset-requests: tomorrow
			x-ratelimit-limit-tokens: 0
			x-ratelimit-remaining-tokens: 0
			anthropic-ratelimit-unified-5h-utilization: NaN
			anthropic-ratelimit-unified-7d-utilization: Inf
			anthropic-ratelimit-unified-7d-reset: 60
			x-codex-primary-used-percent: 1e300
			x-codex-primary-reset-after-seconds: 60`, []Reading{}},
		"a reset that cannot be": {`
			x-ratelimit-remaining-requests: 0
			x-ratelimit-reset-requests: 99999h
			ratelimit-remaining: 5
			ratelimit-reset: 9999-12-31T23:59:59Z`,
			[]Reading{{Reach: Unsaid, Limit: -1, Remaining: 5, Wait: -1}, {Label: "Requests", Limit: -1, Remaining: 0, Wait: -1}}},
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, read(headers(c.headers)), cmp.AllowUnexported(Reading{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReadingsOfRealAnswers reads the headers of refusals that were seen: where a refusal is of
// rate and its headers say what is left, they say that something is used up.
func TestReadingsOfRealAnswers(t *testing.T) {
	t.Parallel()
	const corpus = "../../../shared/corpus/provider-errors.jsonl"
	f, err := os.Open(corpus)
	if err != nil {
		t.Skipf("the corpus of real answers is not here: %v", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	told := 0
	for lines.Scan() {
		var c struct {
			ID      string
			Headers map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		h, limits := http.Header{}, false
		for name, value := range c.Headers {
			h.Set(name, value)
			limits = limits || strings.Contains(name, "-remaining") || strings.HasPrefix(name, "anthropic-ratelimit") || name == "ratelimit"
		}
		got := read(h)
		for _, r := range got {
			if r.Remaining < 0 || r.Limit == 0 {
				t.Errorf("%s: %+v", c.ID, r)
			}
		}
		if len(got) > 0 {
			told++
		} else if limits && !strings.Contains(string(lines.Bytes()), `"-1"`) {
			t.Errorf("%s: nothing is read of %v", c.ID, c.Headers)
		}
	}
	if told < 10 {
		t.Errorf("only %d answers of the corpus tell what is left", told)
	}
}

// FuzzReadings holds that no header makes it panic, or say what cannot be.
func FuzzReadings(f *testing.F) {
	f.Add("X-Ratelimit-Remaining-Requests", "7", "X-Ratelimit-Reset-Requests", "6m0s")
	f.Add("Ratelimit", `"a";r=1;t=2, b`, "Ratelimit-Policy", `"a";q=5`)
	f.Add("Anthropic-Ratelimit-Unified-7d_opus-Status", "rejected", "Anthropic-Ratelimit-Unified-Status", "rejected")
	f.Add("X-Codex-Primary-Used-Percent", "1e300", "X-Tokenlimit-Limit", "-")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		h := http.Header{k1: {v1}, k2: {v2}}
		for _, r := range read(h) {
			if r.Remaining < 0 || r.Limit == 0 || r.Limit < -1 || r.Wait < -1 || r.Wait > maxWait {
				t.Errorf("%q: %q, %q: %q: %+v", k1, v1, k2, v2, r)
			}
		}
	})
}

// BenchmarkRead is what the headers of an ordinary answer cost.
func BenchmarkRead(b *testing.B) {
	h := headers(`
		date: Mon, 05 Jan 2026 10:00:00 GMT
		content-type: application/json
		x-request-id: req_1
		openai-processing-ms: 300
		openai-version: 2020-10-01
		openai-organization: x
		x-ratelimit-limit-requests: 10000
		x-ratelimit-limit-tokens: 30000
		x-ratelimit-remaining-requests: 9999
		x-ratelimit-remaining-tokens: 11950
		x-ratelimit-reset-requests: 6ms
		x-ratelimit-reset-tokens: 6m0s
		cf-ray: 1
		alt-svc: h3`)
	var r Readings
	b.ReportAllocs()
	for b.Loop() {
		r.Read(h, now)
	}
}
