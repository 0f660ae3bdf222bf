package config

import "testing"

// TestTracing: an address is enough, an empty one means off, and a header's value is a secret.
func TestTracing(t *testing.T) {
	t.Parallel()
	const rest = "\nproviders: {ollama: {}}\n"
	if c := mustParse(t, `tracing: {otlp: "${NOWHERE:-}", headers: {a: b}}`+rest); c.Tracing != nil {
		t.Errorf("without an address: %+v", c.Tracing)
	}
	c := mustParse(t, `tracing: {otlp: "http://127.0.0.1:4318", headers: {x-token: collector-secret}}`+rest)
	if tr := c.Tracing; tr == nil || tr.URL != "http://127.0.0.1:4318" || tr.Sample != 1 || tr.Service != "omniroute" || len(tr.Headers) != 1 || tr.Headers[0].Value.Reveal() != "collector-secret" {
		t.Errorf("%+v", tr)
	}
	if got := c.Hide("it is collector-secret"); got != "it is [redacted]" {
		t.Error(got)
	}
	if c := mustParse(t, `tracing: {otlp: "http://127.0.0.1:4318", sample: 5%, service: gw}`+rest); c.Tracing.Sample != 0.05 || c.Tracing.Service != "gw" {
		t.Errorf("%+v", c.Tracing)
	}
}
