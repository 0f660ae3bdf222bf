package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
	"omniroute/resilience"
)

func TestOperations(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]dialect.Operation{
		"/v1/chat/completions":   dialect.OpGenerate,
		"/v1/completions/":       dialect.OpGenerate,
		"/openai/v1/completions": dialect.OpGenerate,
		"/v1/embeddings":         dialect.OpEmbed,
		"/v1/moderations":        dialect.OpOther,
		"/v1/batches":            dialect.OpOther,
	} {
		r, err := Dialect{}.ReadRequest(path, []byte(`{"model":"m"}`))
		if err != nil || r.Operation != want {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
}

func TestErrorBody(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 1, 2, 4, 4, 5, 678_000_000, time.FixedZone("", 3600))
	r := &dialect.ErrorReport{
		Status: 429, Code: dialect.CodeAllTargetsUnavailable, Message: "All <targets> are out; \"acme\" is back soonest.",
		RequestID: "req-1", RetryAfter: 1799500 * time.Microsecond,
		Attempts: []dialect.Attempted{
			{Key: resilience.Key{Provider: "openai", Connection: "main", Model: "gpt-5.2"}, Status: 429, Kind: resilience.KindRateLimit, Scope: resilience.ScopeConnection, Duration: 41 * time.Millisecond},
			{Key: resilience.Key{Provider: "openai", Connection: "spare", Model: "gpt-5.2"}, Kind: resilience.KindNetwork, Scope: resilience.ScopeProvider},
		},
		Skipped: []dialect.Skipped{
			{Key: resilience.Key{Provider: "acme", Connection: "k1", Model: "acme-large"}, Layer: resilience.LayerBreaker, Kind: resilience.KindServerError, Until: until, RetryAfter: 1800 * time.Millisecond},
			{Key: resilience.Key{Provider: "acme", Connection: "k2", Model: "acme-large"}, Layer: resilience.LayerConnection, Kind: resilience.KindAuth},
		},
	}
	const want = `{"error":{"message":"All <targets> are out; \"acme\" is back soonest.","type":"rate_limit_error","code":"all_targets_unavailable","param":null,` +
		`"omniroute":{"request_id":"req-1","retry_after_ms":1800,` +
		`"attempts":[{"provider":"openai","connection":"main","model":"gpt-5.2","status":429,"kind":"rate_limit","scope":"connection","duration_ms":41},` +
		`{"provider":"openai","connection":"spare","model":"gpt-5.2","status":null,"kind":"network","scope":"provider","duration_ms":0}],` +
		`"skipped":[{"provider":"acme","connection":"k1","model":"acme-large","layer":"breaker","kind":"server_error","until":"2026-01-02T03:04:05.678Z","retry_after_ms":1800},` +
		`{"provider":"acme","connection":"k2","model":"acme-large","layer":"connection","kind":"auth","until":null,"retry_after_ms":0}]}}}`
	if diff := cmp.Diff(want, string(Dialect{}.ErrorBody(r))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("data: "+want+"\n\n", string(Dialect{}.ErrorEvent(r))); diff != "" {
		t.Error(diff)
	}

	plain := &dialect.ErrorReport{Status: 400, Param: "model", Message: "The field model is missing."}
	const wantPlain = `{"error":{"message":"The field model is missing.","type":"invalid_request_error","code":null,"param":"model"}}`
	if diff := cmp.Diff(wantPlain, string(Dialect{}.ErrorBody(plain))); diff != "" {
		t.Error(diff)
	}
	bare := &dialect.ErrorReport{Code: dialect.CodeShuttingDown, Message: "x", RequestID: "req-2"}
	const wantBare = `{"error":{"message":"x","type":"server_error","code":"shutting_down","param":null,"omniroute":{"request_id":"req-2","attempts":[],"skipped":[]}}}`
	if diff := cmp.Diff(wantBare, string(Dialect{}.ErrorBody(bare))); diff != "" {
		t.Error(diff)
	}
}

func TestErrorTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		report dialect.ErrorReport
		want   string
	}{
		{dialect.ErrorReport{Status: 400}, "invalid_request_error"},
		{dialect.ErrorReport{Code: dialect.CodeInvalidAPIKey}, "invalid_request_error"},
		{dialect.ErrorReport{Status: 403}, "permission_error"},
		{dialect.ErrorReport{Code: dialect.CodeModelNotFound}, "invalid_request_error"},
		{dialect.ErrorReport{Code: dialect.CodeRequestTooLarge}, "invalid_request_error"},
		{dialect.ErrorReport{Status: 429}, "rate_limit_error"},
		{dialect.ErrorReport{Status: 429, Code: "insufficient_quota"}, "insufficient_quota"},
		{dialect.ErrorReport{Code: dialect.CodeUpstreamError}, "server_error"},
		{dialect.ErrorReport{Code: dialect.CodeDeadlineExceeded}, "server_error"},
		{dialect.ErrorReport{Status: 400, Type: "their_type"}, "their_type"},
	} {
		e, ok := Dialect{}.ReadError(Dialect{}.ErrorBody(&c.report))
		if !ok || e.Type != c.want || e.Code != c.report.Code {
			t.Errorf("%+v: %+v %v, want type %q", c.report, e, ok, c.want)
		}
	}
}

func TestReadError(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]dialect.UpstreamError{
		`{"error":{"message":"m","type":"t","param":"p","code":"c"}}`:    {Message: "m", Type: "t", Param: "p", Code: "c"},
		"\ufeff\n" + `{"error":{"message":"m","code":404,"param":null}}`: {Message: "m", Code: "404"},
		`{"error":"words"}`:                                                   {Message: "words"},
		`{"error":"word","message":"in full"}`:                                {Message: "in full", Code: "word"},
		`{"error":true,"message":"m","code":"c"}`:                             {Message: "m", Code: "c"},
		`{"error":{"reason":"r"}}`:                                            {Message: `{"reason":"r"}`},
		`{"error":{"code":7}}`:                                                {Code: "7"},
		`{"object":"error","message":"m","type":"T","param":null,"code":400}`: {Message: "m", Type: "T", Code: "400"},
		`{"detail":"Not Found"}`:                                              {Message: "Not Found"},
		`{"detail":[{"loc":["body"],"msg":"field required"}]}`:                {Message: `[{"loc":["body"],"msg":"field required"}]`},
		`[{"error":{"message":"m","status":"S"}}]`:                            {Message: "m"},
		`{"success":false,"errors":[{"code":5006,"message":"m"},{"message":"n"}],"result":{}}`: {Message: "m", Code: "5006"},
		`{"errors":["words","more"]}`:            {Message: "words"},
		`{"errors":[],"message":"m"}`:            {Message: "m"},
		`{"error":[{"message":"m","code":429}]}`: {Message: "m", Code: "429"},
		`{"msg":"short","message":"long"}`:       {Message: "long"},
		`<html>`:                                 {},
		`{"error":{"message":"m"}`:               {},
		`{"error":null}`:                         {},
		`[]`:                                     {},
		`{"id":"x","choices":[]}`:                {},
		``:                                       {},
	} {
		got, ok := Dialect{}.ReadError([]byte(body))
		if diff := cmp.Diff(want, got); diff != "" || ok != (want != dialect.UpstreamError{}) {
			t.Errorf("%s: %v\n%s", body, ok, diff)
		}
	}
}

const typicalChunk = `{"id":"chatcmpl-C0ffee1234567890abcdefghij","object":"chat.completion.chunk","created":1764460800,"model":"gpt-5.2-2026-01-15","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" world"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aB3dE5fG7h"}`

func TestObserveDoesNotAllocate(t *testing.T) {
	st := Dialect{}.NewStream(&dialect.Request{})
	events := []*sse.Event{
		{Data: []byte(typicalChunk), HasData: true},
		{Data: []byte(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`), HasData: true},
	}
	st.Observe(events[0])
	if n := testing.AllocsPerRun(100, func() {
		for _, ev := range events {
			st.Observe(ev)
		}
	}); n != 0 {
		t.Errorf("%v allocations for two events", n)
	}
}

// FuzzJudge: nothing that an upstream sends may panic; a stream is judged the same when its
// JSON is written another way; an error report reads back.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		typicalChunk, `{"error":{"message":"m","code":1}}`, `[{"error":"x"}]`, `{"choices":[{"delta":{"content":[{"text":"a"}]}},1,null]}`,
		`{"usage":{"prompt_tokens":1e3}}`, `[DONE]`, `{"choices":[{"index":-1,"finish_reason":"\u0073top","text":"\""}]}`, `{"choices":[{"index":1e99}]}`,
	} {
		f.Add([]byte(seed), uint8(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, op uint8) {
		req := &dialect.Request{Operation: dialect.Operation(op % 4)}
		a := Dialect{}.Inspect(req, data)
		if a.Error && a.Complete || a.Malformed && a.Complete || a.Malformed && a.Content {
			t.Fatalf("%q: %+v", data, a)
		}
		st := Dialect{}.NewStream(req)
		obs := st.Observe(&sse.Event{Data: data, HasData: true})
		if obs.Malformed && (obs.Content || obs.Finish != dialect.FinishNone || obs.Error) {
			t.Fatalf("%q: %+v", data, obs)
		}
		if json.Valid(data) && !strings.ContainsRune(string(data), '\ufffd') {
			var value any
			if json.Unmarshal(data, &value) != nil || duplicateKeys(data, value) {
				return
			}
			again, _ := json.Marshal(value)
			st2 := Dialect{}.NewStream(req)
			obs2 := st2.Observe(&sse.Event{Data: again, HasData: true})
			obs.Envelope, obs2.Envelope = nil, nil
			if diff := cmp.Diff(obs, obs2); diff != "" {
				t.Fatalf("%q and %q:\n%s", data, again, diff)
			}
		}
		e, ok := Dialect{}.ReadError(data)
		if !ok || e.Message == "" {
			return
		}
		report := &dialect.ErrorReport{Status: 400, Message: e.Message, Type: e.Type, Code: e.Code, Param: e.Param}
		body := Dialect{}.ErrorBody(report)
		if !json.Valid(body) {
			t.Fatalf("%q gives %q", data, body)
		}
		if !(Dialect{}).Inspect(&dialect.Request{}, body).Error {
			t.Fatalf("our own error is not one: %q", body)
		}
	})
}

// duplicateKeys reports whether encoding/json dropped or changed anything on the way in, by
// size without white space: then the two forms say different things.
func duplicateKeys(data []byte, value any) bool {
	again, err := json.Marshal(value)
	return err != nil || strings.Count(string(data), `":`) != strings.Count(string(again), `":`) || strings.Contains(string(data), `\`)
}

func BenchmarkObserve(b *testing.B) {
	for name, data := range map[string]string{
		"text": typicalChunk,
		"tool": `{"id":"chatcmpl-C0ffee1234567890abcdefghij","object":"chat.completion.chunk","created":1764460800,"model":"gpt-5.2","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"a/b/c.go\"}"}}]},"finish_reason":null}]}`,
		"2kB":  fmt.Sprintf(`{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, strings.Repeat("some words ", 180)),
	} {
		b.Run(name, func(b *testing.B) {
			ev := &sse.Event{Data: []byte(data), HasData: true}
			st := Dialect{}.NewStream(&dialect.Request{})
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if !st.Observe(ev).Content {
					b.Fatal("no content")
				}
			}
		})
	}
}
