package classify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"omniroute/resilience"
)

// FuzzClassify throws bytes at every path: no panic, a named rule, and verdicts that hold together.
func FuzzClassify(f *testing.F) {
	cl := classifier(f)
	for _, r := range BuiltinRules() {
		for _, e := range r.Examples {
			f.Add(e.Body, "text/plain", "7", uint16(e.Status), byte(e.Phase))
		}
	}
	f.Add(`{"error":{"message":"Error code: 429 - {'error': {'message': 'x\u00e9', 'code': None}}"}}`, "application/json", "-1", uint16(500), byte(0))
	f.Add("data: {\"a\":\n\ndata: [DONE]\n\n: x\nevent: error", "text/event-stream", "Mon, 05 Jan", uint16(200), byte(3))
	f.Add(strings.Repeat("[", 300)+`{"error`, "", "99999999999999999999", uint16(429), byte(4))
	f.Add("\xff\xfe\x00resets at 2026-99-99 99:99", "", "1e400", uint16(429), byte(0))
	f.Fuzz(func(t *testing.T, body, contentType, retryAfter string, status uint16, phase byte) {
		in := Input{Provider: []string{"", "openai", "zhipu", "gemini"}[int(status)%4], Model: "gpt-4o", Phase: Phase(phase % 5), Status: int(status % 700),
			Header: http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}, "X-Ratelimit-Reset": {retryAfter}}, Body: []byte(body), Now: exampleNow}
		v := cl.Classify(in)
		if v.Rule != ruleHealthy {
			checkVerdict(t, "fuzz", in, v)
		}
		if v.Scope == resilience.ScopeNone && (in.Status < 200 || in.Status > 299) {
			t.Fatalf("status %d became a success: %v", in.Status, v)
		}
		NewSamples(1).Add(in, v)
	})
}

// FuzzQuickHealthy: the cheap path may only say yes where the full reading does.
func FuzzQuickHealthy(f *testing.F) {
	f.Add(healthyAnswer)
	f.Add(`{"choices":[{"message":{"content":"a\\"}}]}`)
	f.Add(`{"content":"x","error":{"a":1}}`)
	f.Add(`{"a":{"content":"x"}}{"error":1}`)
	f.Fuzz(func(t *testing.T, body string) {
		in := Input{Status: 200, Body: []byte(body), Now: exampleNow}
		// The full reading is lenient with broken JSON and with the case of keys; there the two
		// may differ.
		if !quickHealthy(in) || !json.Valid(in.Body) || strings.ToLower(body) != body {
			return
		}
		if a := read(in); !a.healthy && a.has(isJSON) && !a.has(isStream) {
			t.Fatalf("the cheap path missed what the full reading sees: %s", body)
		}
	})
}

// FuzzHints: prose and dates never panic and never give a negative wait.
func FuzzHints(f *testing.F) {
	for _, s := range []string{"try again in 5s", "resets at 2026-01-05 10:00", "请在 30 秒后重试", "x|1783695600", "resets 3pm (America/New_York)", "wait 9999999999999 weeks"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		proseHint(s, exampleNow, time.UTC)
		parseGoDuration(s)
		(&hints{now: exampleNow}).at(s, "x")
	})
}

// FuzzParseResponse and FuzzParseLine: input forms of the command line.
func FuzzParseResponse(f *testing.F) {
	f.Add("HTTP/1.1 429 Too Many\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	f.Add("HTTP/2 200\n\nHTTP/1.1 100\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		if in, err := ParseResponse(strings.NewReader(s)); err == nil && (in.Status < 100 || len(in.Body) > maxRaw) {
			t.Fatalf("accepted %+v", in)
		}
	})
}

func FuzzParseLine(f *testing.F) {
	f.Add(`{"id":"a","status":429,"headers":{"a":"b"},"body":"x","streaming":false}`)
	f.Fuzz(func(t *testing.T, s string) { ParseLine([]byte(s), exampleNow) })
}

// TestCompressedBodies reads every coding, cut short or not, and survives bombs and lies.
func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	pack := map[string]func([]byte) []byte{
		"gzip": func(b []byte) []byte {
			var o bytes.Buffer
			w := gzip.NewWriter(&o)
			w.Write(b)
			w.Close()
			return o.Bytes()
		},
		"deflate": func(b []byte) []byte {
			var o bytes.Buffer
			w := zlib.NewWriter(&o)
			w.Write(b)
			w.Close()
			return o.Bytes()
		},
		"DEFLATE": func(b []byte) []byte {
			var o bytes.Buffer
			w, _ := flate.NewWriter(&o, 6)
			w.Write(b)
			w.Close()
			return o.Bytes()
		},
		"br": func(b []byte) []byte {
			var o bytes.Buffer
			w := brotli.NewWriter(&o)
			w.Write(b)
			w.Close()
			return o.Bytes()
		},
		"zstd": func(b []byte) []byte { w, _ := zstd.NewWriter(nil); return w.EncodeAll(b, nil) },
		"gzip, br": func(b []byte) []byte {
			var o, p bytes.Buffer
			w := gzip.NewWriter(&o)
			w.Write(b)
			w.Close()
			x := brotli.NewWriter(&p)
			x.Write(o.Bytes())
			x.Close()
			return p.Bytes()
		},
	}
	answer := []byte(`{"error":{"code":"invalid_api_key","message":"` + strings.Repeat("no good. ", 300) + `"}}`)
	bomb := bytes.Repeat([]byte(" "), 256<<10)
	for name, f := range pack {
		header := http.Header{"Content-Encoding": {name}}
		if v := cl.Classify(Input{Status: 401, Header: header, Body: f(answer), Now: exampleNow}); v.Rule != "code.auth" {
			t.Errorf("%s: reached %s (%s)", name, v.Rule, v.Evidence)
		}
		if v := cl.Classify(Input{Status: 401, Header: header, Body: answer, Now: exampleNow}); v.Rule != "code.auth" {
			t.Errorf("%s: a header left over after decompression hid the body: %s", name, v.Rule)
		}
		if got := plainBody(header, f(bomb)); len(got) > maxBody {
			t.Errorf("%s: %d bytes came out of a bomb", name, len(got))
		}
		if v := cl.Classify(Input{Status: 200, Header: header, Body: f([]byte(healthyAnswer)), Now: exampleNow}); v.Scope != resilience.ScopeNone {
			t.Errorf("%s: a compressed healthy answer became %v", name, v)
		}
	}
	if v := cl.Classify(Input{Status: 401, Header: http.Header{"Content-Encoding": {"gzip"}}, Body: pack["gzip"](answer)[:60], Now: exampleNow}); v.Kind != auth {
		t.Errorf("a cut gzip body gave %v", v)
	}
}

// TestLargeBodiesCostNoMoreThanTheirBeginning also covers successes that are longer than what is read.
// It does not run in parallel, since it counts allocations.
func TestLargeBodiesCostNoMoreThanTheirBeginning(t *testing.T) {
	cl := classifier(t)
	body := []byte(`{"error":{"code":"rate_limit_exceeded","message":"` + strings.Repeat("quota exceeded. ", 10<<20/16))
	allocated := func(b []byte) float64 {
		in := Input{Status: 429, Body: b, Now: exampleNow}
		return testing.AllocsPerRun(5, func() { cl.Classify(in) })
	}
	if small, large := allocated(body[:maxBody]), allocated(body); large > small+2 {
		t.Errorf("10 MiB allocate %v times, 64 KiB %v times", large, small)
	}
	long := `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("word ", 40<<10) + `"},"finish_reason":"stop"}]}`
	if v := cl.Classify(Input{Status: 200, Body: []byte(long), Now: exampleNow}); v.Scope != resilience.ScopeNone {
		t.Errorf("a long good answer became %v", v)
	}
}
