package classify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseResponse(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	for _, tt := range []struct{ name, raw, rule, body string }{
		{"curl -i", "HTTP/2 429\r\ncontent-type: application/json\r\nretry-after: 3\r\n\r\n{\"error\":{\"type\":\"rate_limit_error\"}}", "code.rate_limit", ""},
		{"bare line ends", "HTTP/1.1 401 Unauthorized\nContent-Type: application/json\n\n{\"error\":{\"code\":\"invalid_api_key\"}}\n", "code.auth", ""},
		{"no reason, no body", "HTTP/1.1 500", "default.5xx", ""},
		{"no body", "HTTP/1.1 403 Forbidden\nServer: x\n\n", "default.403", ""},
		{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 402 Payment Required\r\n\r\n", "default.402", ""},
		{"chunked wire form", "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"err\r\nc\r\nor\":\"oops x\"\r\n1\r\n}\r\n0\r\n\r\n", "default.400_said", `{"error":"oops x"}`},
		{"chunked, joined", "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n{\"error\":\"oops\"}", "default.400_said", `{"error":"oops"}`},
		{"content length that lies", "HTTP/1.1 400 Bad Request\r\nContent-Length: 9999\r\n\r\n{\"error\":\"oops\"}", "default.400_said", ""},
	} {
		in, err := ParseResponse(strings.NewReader(tt.raw))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if tt.body != "" && string(in.Body) != tt.body {
			t.Errorf("%s: body %q, want %q", tt.name, in.Body, tt.body)
		}
		in.Now = exampleNow
		if v := cl.Classify(in); v.Rule != tt.rule {
			t.Errorf("%s: reached %s, want %s", tt.name, v.Rule, tt.rule)
		}
	}
	for raw, want := range map[string]string{
		"":                                "begin with a status line",
		"{\"error\":1}":                   "begin with a status line",
		"HTTP/1.1 abc":                    "begin with a status line",
		"HTTP/1.1 400 Bad\n{\"a\":\"b\"}": "put an empty line between headers and body",
	} {
		if _, err := ParseResponse(strings.NewReader(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", raw, err, want)
		}
	}
}

func TestParseLineAndResult(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	for _, tt := range []struct{ line, want string }{
		{`{"id":"a","provider":"openai","dialect":"openai","status":429,"headers":{"retry-after":"30"},"body":"{\"error\":{\"type\":\"rate_limit_error\"}}","streaming":false,"now":"2026-01-05T10:00:00Z"}`,
			`{"id":"a","scope":"connection","kind":"rate_limit","retry_after_ms":30000,"until":"2026-01-05T10:00:30.000Z","retry_same":true,"retry_elsewhere":true,"quarantine":false,"rule":"code.rate_limit"}`},
		{`{"id":"b","provider":"openai","status":200,"body":{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}}`,
			`{"id":"b","scope":"none","kind":"unknown","retry_after_ms":null,"until":null,"retry_same":false,"retry_elsewhere":false,"quarantine":false,"rule":"healthy"}`},
		{`{"id":"c","provider":"x","status":401,"headers":{"a":["b","c"],"n":5},"body":"{\"error\":{\"code\":\"invalid_api_key\"}}","streaming":"mid-stream"}`,
			`{"id":"c","scope":"connection","kind":"auth","retry_after_ms":null,"until":null,"retry_same":false,"retry_elsewhere":false,"quarantine":true,"rule":"code.auth"}`},
		{`{"id":"d","provider":"x","status":429,"rate_limit_scope":"model","body":null,"streaming":"first-event"}`,
			`{"id":"d","scope":"model","kind":"rate_limit","retry_after_ms":null,"until":null,"retry_same":true,"retry_elsewhere":true,"quarantine":false,"rule":"default.429"}`},
		{`{"id":"e","provider":"zhipu","status":429,"body":"{\"error\":{\"code\":\"1304\"}}","now":"2026-01-05T10:00:00Z"}`,
			`{"id":"e","scope":"model","kind":"quota_exhausted","retry_after_ms":null,"until":"2026-01-05T16:00:00.000Z","retry_same":false,"retry_elsewhere":true,"quarantine":false,"rule":"zhipu.day"}`},
	} {
		c, err := ParseLine([]byte(tt.line), exampleNow)
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		got, err := json.Marshal(NewResult(c.ID, cl.Classify(c.Input), c.Input.Now))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, string(got)); d != "" {
			t.Errorf("%s\n%s", tt.line, d)
		}
	}
	for line, want := range map[string]string{
		`[`:                               "not one JSON object",
		`{"status":"x"}`:                  "not one JSON object",
		`{"streaming":"sometimes"}`:       `write false, "first-event" or "mid-stream"`,
		`{"now":"yesterday"}`:             "write a time such as",
		`{"headers":{"a":{}}}`:            "header a",
		`{"rate_limit_scope":"provider"}`: "write model or connection",
	} {
		if _, err := ParseLine([]byte(line), time.Time{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", line, err, want)
		}
	}
}
