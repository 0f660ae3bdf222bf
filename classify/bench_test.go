package classify

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

const healthyAnswer = `{"id":"chatcmpl-9xQ","object":"chat.completion","created":1767607200,"model":"m-large-2026-01-01","choices":[{"index":0,"message":{"role":"assistant","content":"The quick brown fox jumps over the lazy dog. It does so every day, and \"nobody\" complains about an error or a rate limit.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":28,"total_tokens":47,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_1"}`

func BenchmarkHealthy(b *testing.B) {
	c := classifier(b)
	in := Input{Provider: "openai", Dialect: "openai", Status: 200, Body: []byte(healthyAnswer), Now: exampleNow,
		Header: http.Header{"Content-Type": {"application/json"}}}
	if v := c.Classify(in); v.Rule != ruleHealthy {
		b.Fatal(v)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Classify(in)
	}
}

func BenchmarkError(b *testing.B) {
	c := classifier(b)
	in := Input{Provider: "acme", Dialect: "openai", Status: 429, Now: exampleNow,
		Body: []byte(`{"error":{"message":"Rate limit reached for m-1 in organization o-1 on tokens per min (TPM): Limit 30000, Used 14567, Requested 24754. Please try again in 18.642s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		c.Classify(in)
	}
}

// BenchmarkCorpus reports the median over all entries, which is the number to keep under 20 µs.
func BenchmarkCorpus(b *testing.B) {
	es := corpus(b)
	c := classifier(b)
	const rounds = 20
	medians := make([]float64, len(es))
	for b.Loop() {
		for i, e := range es {
			start := time.Now()
			for range rounds {
				c.Classify(e.in)
			}
			medians[i] = float64(time.Since(start).Nanoseconds()) / rounds
		}
	}
	slices.Sort(medians)
	b.ReportMetric(medians[len(medians)/2], "ns/median")
	b.ReportMetric(medians[len(medians)*99/100], "ns/p99")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkLargeBody(b *testing.B) {
	c := classifier(b)
	body := append([]byte(`{"error":{"message":"`), slices.Repeat([]byte("quota exceeded. "), 10<<20/16)...)
	for name, n := range map[string]int{"64KiB": maxBody, "10MiB": len(body)} {
		b.Run(name, func(b *testing.B) {
			in := Input{Status: 429, Body: body[:n], Now: exampleNow}
			b.ReportAllocs()
			for b.Loop() {
				c.Classify(in)
			}
		})
	}
}
