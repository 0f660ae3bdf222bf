package classify

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"omniroute/resilience"
)

// TestHints has every encoding of a wait that upstreams use.
func TestHints(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, header, body string
		want               time.Duration
		source             string
	}{
		{"seconds", "retry-after: 7", ``, 7 * time.Second, "retry-after"},
		{"seconds with unit", "retry-after: 7s", ``, 7 * time.Second, "retry-after"},
		{"fraction", "retry-after: 1.5", ``, 1500 * time.Millisecond, "retry-after"},
		{"date", "retry-after: Mon, 05 Jan 2026 10:00:07 GMT", ``, 7 * time.Second, "retry-after"},
		{"rfc 3339", "retry-after: 2026-01-05T10:00:07Z", ``, 7 * time.Second, "retry-after"},
		{"epoch in retry-after", "retry-after: 1767607207", ``, 7 * time.Second, "retry-after"},
		{"milliseconds", "retry-after-ms: 7000", ``, 7 * time.Second, "retry-after-ms"},
		{"milliseconds first", "retry-after: 9\nretry-after-ms: 7000", ``, 7 * time.Second, "retry-after-ms"},
		{"header before body", "retry-after: 7", `{"error":{"resets_in_seconds":99,"message":"try again in 50s"}}`, 7 * time.Second, "retry-after"},
		{"body before words", "", `{"error":{"resets_in_seconds":7,"message":"try again in 50s"}}`, 7 * time.Second, "resets_in_seconds"},
		{"words before reset headers", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 50s", `{"error":{"message":"try again in 7s"}}`, 7 * time.Second, "text"},
		{"go duration", "x-ratelimit-reset-requests: 7s", ``, 7 * time.Second, "x-ratelimit-reset-requests"},
		{"long go duration", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 3h5m45.6s", ``, 11145600 * time.Millisecond, "x-ratelimit-reset-requests"},
		{"used-up bucket", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 6m0s\nx-ratelimit-remaining-tokens: 900\nx-ratelimit-reset-tokens: 20ms", ``, 6 * time.Minute, "x-ratelimit-reset-requests"},
		{"named bucket", "x-ratelimit-reset-requests: 7s\nx-ratelimit-reset-tokens: 6m0s", `{"error":{"type":"tokens","message":"limit"}}`, 6 * time.Minute, "x-ratelimit-reset-tokens"},
		{"nothing used up", "x-ratelimit-remaining-requests: 5\nx-ratelimit-reset-requests: 6m0s", ``, 0, ""},
		{"sentinel", "x-ratelimit-remaining-tokens: -1\nx-ratelimit-reset-tokens: 0", ``, 0, ""},
		{"epoch seconds", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 1767607207", ``, 7 * time.Second, "x-ratelimit-reset"},
		{"epoch milliseconds", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 1767607207000", ``, 7 * time.Second, "x-ratelimit-reset"},
		{"delta by size", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 7", ``, 7 * time.Second, "x-ratelimit-reset"},
		{"anthropic", "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-01-05T10:00:07Z\nanthropic-ratelimit-tokens-remaining: 9\nanthropic-ratelimit-tokens-reset: 2026-01-05T11:00:00Z", ``, 7 * time.Second, "anthropic-ratelimit-requests-reset"},
		{"draft", `ratelimit: "default";r=0;t=7`, ``, 7 * time.Second, "ratelimit"},
		{"draft list", `ratelimit: "burst";r=5;t=3, "hourly";r=0;t=7`, ``, 7 * time.Second, "ratelimit"},
		{"draft list of one bucket", "ratelimit: limit=100, remaining=0, reset=7", ``, 7 * time.Second, "ratelimit"},
		{"draft list, nothing used up", `ratelimit: "burst";r=5;t=3, "hourly";r=1;t=7`, ``, 0, ""},
		{"parameters in body", "", `{"error":{"message":"x","parameters":{"retry_after":7}}}`, 7 * time.Second, "retry_after"},
		{"older draft", "ratelimit-remaining: 0\nratelimit-reset: 7", ``, 7 * time.Second, "ratelimit-reset"},
		{"time remaining", "x-ratelimit-timeremaining: 7", ``, 7 * time.Second, "x-ratelimit-timeremaining"},
		{"codex", "x-codex-primary-used-percent: 100\nx-codex-primary-reset-after-seconds: 7\nx-codex-secondary-used-percent: 30\nx-codex-secondary-reset-after-seconds: 9999", ``, 7 * time.Second, "x-codex-primary-reset-after-seconds"},
		{"codex week", "x-codex-primary-used-percent: 40\nx-codex-primary-reset-after-seconds: 7\nx-codex-secondary-used-percent: 100\nx-codex-secondary-reset-at: 1767607270", ``, 70 * time.Second, "x-codex-secondary-reset-at"},
		{"retry info", "", `{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`, 7 * time.Second, "RetryInfo.retryDelay"},
		{"retry info fraction", "", `{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.539477544s"}]}}`, 539477544, "RetryInfo.retryDelay"},
		{"quota delay", "", `{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"quotaResetDelay":"539.477544ms"}}]}}`, 539477544, "quotaResetDelay"},
		{"resets_at", "", `{"error":{"resets_at":1767607207,"resets_in_seconds":1}}`, 7 * time.Second, "resets_at"},
		{"retry_after in body", "", `{"message":"x","retry_after":7.5}`, 7500 * time.Millisecond, "retry_after"},
		{"headers in body", "", `{"error":{"message":"x","metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1767607207000"}}}}`, 7 * time.Second, "body x-ratelimit-reset"},
		{"past", "retry-after: Mon, 05 Jan 2026 09:00:00 GMT", ``, 0, ""},
		{"negative", "retry-after: -5", ``, 0, ""},
		{"beyond 31 days", "retry-after: 2678401", ``, 2678401 * time.Second, "retry-after"},
		{"absurd", "retry-after: 99999999999", ``, 1e9 * time.Second, "retry-after"},
		{"more than a number holds", "retry-after: 1" + strings.Repeat("0", 400), ``, 1e9 * time.Second, "retry-after"},
		{"absurd milliseconds", "retry-after-ms: 1e300", ``, 1e9 * time.Second, "retry-after-ms"},
		{"absurd in the body", "", `{"error":{"retry_after":99999999999}}`, 1e9 * time.Second, "retry_after"},
		{"a date of another age", "retry-after: 9999-01-01T00:00:00Z", ``, 1e9 * time.Second, "retry-after"},
		{"past, then absurd", "retry-after-ms: -5\nretry-after: 2678401", ``, 2678401 * time.Second, "retry-after"},
		{"absurd, then words", "retry-after: 99999999999", `{"error":{"message":"try again in 7s"}}`, 7 * time.Second, "text"},
		{"rubbish", "retry-after: soon", ``, 0, ""},
	} {
		in := Input{Provider: "acme", Status: 429, Body: []byte(tt.body), Header: http.Header{}, Now: now}
		for line := range strings.Lines(tt.header) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
			in.Header.Add(k, v)
		}
		v := cl.Classify(in)
		if v.RetryAfter != tt.want {
			t.Errorf("%s: got %v, want %v (%s)", tt.name, v.RetryAfter, tt.want, v.Evidence)
		}
		if tt.source != "" && !strings.Contains(v.Evidence, "hint "+tt.source+" ") {
			t.Errorf("%s: the evidence does not say that the hint came from %s: %s", tt.name, tt.source, v.Evidence)
		}
		if v.Prose != (tt.source == "text") {
			t.Errorf("%s: prose is %v", tt.name, v.Prose)
		}
	}
	if v := cl.Classify(Input{Status: 429, Header: http.Header{"Retry-After": {"99999999999"}}, Body: []byte(`{"error":{"message":"try again in 7s"}}`), Now: now}); !strings.Contains(v.Evidence, "longer than 31 days") {
		t.Errorf("the evidence should tell of the long wait that was not taken: %s", v.Evidence)
	}
	for header, why := range map[string]string{"-5": "negative", "Mon, 05 Jan 2026 09:00:00 GMT": "already past"} {
		v := cl.Classify(Input{Status: 429, Header: http.Header{"Retry-After": {header}}, Now: now})
		if !strings.Contains(v.Evidence, why) {
			t.Errorf("retry-after %s: the evidence should say %q: %s", header, why, v.Evidence)
		}
	}
}

func TestWaitsInWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	at := func(s string) time.Duration {
		p, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return p.Sub(now)
	}
	for _, tt := range []struct {
		text string
		zone string
		want time.Duration
	}{
		{"Please try again in 18.642s. Visit the page.", "", 18642 * time.Millisecond},
		{"Please try again in 174ms.", "", 174 * time.Millisecond},
		{"try again in 7m12s", "", 432 * time.Second},
		{"try again in 16m32.64s.", "", 992640 * time.Millisecond},
		{"Please retry in 56.185908122s.", "", 56185908122},
		{"Please retry after 45 seconds.", "", 45 * time.Second},
		{"retry after 2 hours", "", 2 * time.Hour},
		{"retry after 7 days.", "", 168 * time.Hour},
		{"please try again after 1 seconds", "", time.Second},
		{"Please wait 33127 seconds before retrying", "", 33127 * time.Second},
		{"wait 33,127 seconds", "", 33127 * time.Second},
		{"Your quota will reset after 1h43m56s", "", 6236 * time.Second},
		{"Resets in 9h22m20s", "", 33740 * time.Second},
		{"Please wait 8 hours 24 minutes and try again", "", 30240 * time.Second},
		{"try again in 1 hour and 5 minutes", "", 65 * time.Minute},
		{"Monthly limit reached. Resets in 13 days", "", 312 * time.Hour},
		{"Quota will be replenished in 02:10:03.", "", 2*time.Hour + 10*time.Minute + 3*time.Second},
		{"Quota will be replenished in 2.10:03:04", "", 58*time.Hour + 3*time.Minute + 4*time.Second},
		{"try again in about 30 seconds", "", 30 * time.Second},
		{"usage limit reached|1767610800", "", time.Hour},
		{"You will regain access on 2026-02-01 at 00:00 UTC.", "", at("2026-02-01T00:00:00Z")},
		{"resets at 2026-01-05T15:00:00Z (2056)", "", 5 * time.Hour},
		{"resets at 2026-01-05 23:00:00 +08:00", "", 5 * time.Hour},
		{"Your limit will reset at 2026-01-05 19:00:00", "Asia/Shanghai", time.Hour},
		{"您的限额将在 2026-01-05 19:00:00 重置", "Asia/Shanghai", time.Hour},
		{"Too Many Requests: retry after 35", "", 35 * time.Second},
		{"Retry after: 35. Thank you.", "", 35 * time.Second},
		{"请求过多，请于1分钟后再试", "", time.Minute},
		{"请在 30 秒后重试", "", 30 * time.Second},
		{"请 5 分钟后再试", "", 5 * time.Minute},
		{"5-hour limit reached, resets 3pm (America/New_York)", "", 10 * time.Hour},
		{"limit reached. Resets at 11:30 PM UTC", "", 13*time.Hour + 30*time.Minute},
		{"limit reached, resets at 09:00 UTC", "", 23 * time.Hour},
		{"Resets on Feb 3, 2026 at 5:00 pm", "", at("2026-02-03T17:00:00Z")},
		{"available again on January 7th", "", 38 * time.Hour},
		{"Limit resets at: 2026-01-05 10:01:00 UTC", "", time.Minute},
		{"The quota resets at midnight UTC.", "", 14 * time.Hour},
		{"resets at midnight Pacific time", "", 22 * time.Hour},
		{"your quota is refreshed in 3 days 4 hours", "", 76 * time.Hour},
		{"Intente de nuevo en 30 segundos.", "", 30 * time.Second},
		{"Versuchen Sie es in 20 Sekunden erneut.", "", 20 * time.Second},
		{"30秒後に再試行してください。", "", 30 * time.Second},
		{"5 分钟后恢复", "", 5 * time.Minute},
		{"20초 후에 다시 시도하세요.", "", 20 * time.Second},

		// None of these states a wait.
		{"Try again in a minute", "", 0},
		{"Please try again later.", "", 0},
		{"within the last 5 minutes you sent 90 requests", "", 0},
		{"it can take up to 15 minutes for access to propagate", "", 0},
		{"was removed on September 15, 2025", "", 0},
		{"Rate limit of 50 per 86400s exceeded", "", 0},
		{"Limit 30000, Used 14567, Requested 24754.", "", 0},
		{"retry your request 3 times", "", 0},
		{"retry after 3 failed attempts", "", 0},
		{"retry in 3 places", "", 0},
		{"limit 5 hours of audio", "", 0},
		{"1秒あたり5回まで", "", 0},
		{"每1分钟最多5次", "", 0},
	} {
		h := proseHint(tt.text, now, location(tt.zone))
		if h.wait != tt.want || h.ok != (tt.want != 0) {
			t.Errorf("%q: got %v (ok %v), want %v", tt.text, h.wait, h.ok, tt.want)
		}
	}
}

// TestWindowsEndAtMidnightOfTheProvidersZone, in weeks where that zone changes its clocks too.
func TestWindowsEndAtMidnightOfTheProvidersZone(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	day := `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota","details":[{"@type":"x/google.rpc.QuotaFailure","violations":[{"quotaId":"RequestsPerDayPerProjectPerModel"}]},{"@type":"x/google.rpc.RetryInfo","retryDelay":"26s"}]}}`
	for _, tt := range []struct{ provider, now, body, until string }{
		{"gemini", "2026-03-08T09:30:00Z", day, "2026-03-09T07:00:00Z"}, // the night that has no 2:30
		{"gemini", "2026-03-08T07:59:59Z", day, "2026-03-08T08:00:00Z"},
		{"gemini", "2026-11-01T07:30:00Z", day, "2026-11-02T08:00:00Z"}, // the day of 25 hours
		{"gemini", "2026-07-01T12:00:00Z", day, "2026-07-02T07:00:00Z"},
		{"zhipu", "2026-03-08T15:59:00Z", `{"error":{"code":"1304","message":"今日"}}`, "2026-03-08T16:00:00Z"},
		{"zhipu", "2026-03-08T16:00:00Z", `{"error":{"code":"1304","message":"今日"}}`, "2026-03-09T16:00:00Z"},
		{"acme", "2026-03-29T00:30:00Z", `{"error":{"message":"you used up your daily free allocation"}}`, "2026-03-30T00:00:00Z"},
		{"github-copilot", "2026-12-31T23:00:00Z", `{"error":{"message":"You have no quota","code":"quota_exceeded"}}`, "2027-01-01T00:00:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		v := cl.Classify(Input{Provider: tt.provider, Status: 429, Body: []byte(tt.body), Now: now})
		if got := v.Until.UTC().Format(time.RFC3339); got != tt.until || v.Kind != resilience.KindQuotaExhausted || v.Prose {
			t.Errorf("%s at %s: until %s (%v, prose %v), want %s", tt.provider, tt.now, got, v, v.Prose, tt.until)
		}
		if v.RetrySame && v.Until.Sub(now) > time.Minute {
			t.Errorf("%s: it is out until midnight, so the same target must not be retried", tt.provider)
		}
	}
}
