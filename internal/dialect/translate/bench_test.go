package translate

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

// BenchmarkChunk is one typical text chunk of each upstream for each kind of client.
func BenchmarkChunk(b *testing.B) {
	chunks := map[string]string{
		"openai":    `data: {"id":"chatcmpl-AbCdEf","object":"chat.completion.chunk","created":1700000000,"model":"gpt-5.2","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"obfuscation":"abc"}` + "\n\n",
		"responses": "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","sequence_number":12,"item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":" token","logprobs":[]}` + "\n\n",
		"anthropic": "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}` + "\n\n",
		"gemini":    `data: {"candidates":[{"content":{"parts":[{"text":" token"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":29,"candidatesTokenCount":15,"totalTokenCount":89,"promptTokensDetails":[{"modality":"TEXT","tokenCount":29}]},"modelVersion":"gemini-3-pro","responseId":"b36LacjwM668"}` + "\n\n",
	}
	for _, to := range codecs {
		for _, from := range codecs {
			if from == to {
				continue
			}
			b.Run(to.Name()+"-to-"+from.Name(), func(b *testing.B) {
				tr := benchTranslation(b, from, to, 1)
				st := tr.Stream()
				ev, err := sse.NewReader(strings.NewReader(chunks[to.Name()])).Next()
				if err != nil {
					b.Fatal(err)
				}
				ev = ev.Clone()
				b.ReportAllocs()
				for b.Loop() {
					if len(st.Next(ev)) == 0 {
						b.Fatal("no chunk")
					}
				}
			})
		}
	}
}

// BenchmarkRequest is an agent's request of 100 turns, some 60 KiB, with 20 tools.
func BenchmarkRequest(b *testing.B) {
	for _, from := range codecs {
		for _, to := range codecs {
			if from == to {
				continue
			}
			b.Run(from.Name()+"-to-"+to.Name(), func(b *testing.B) {
				asked := benchRequest(b, from, 100)
				b.SetBytes(int64(len(asked.Body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := New(from, to, asked, Options{Model: "m-1", Now: time.Unix(0, 0), ID: "r"}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func benchTranslation(b *testing.B, from, to dialect.Dialect, turns int) *Translation {
	b.Helper()
	tr, err := New(from, to, benchRequest(b, from, turns), Options{Model: "m-1", Now: time.Unix(0, 0), ID: "r"})
	if err != nil {
		b.Fatal(err)
	}
	return tr
}

// benchRequest writes a chat and lets the dialect say it in its own words.
func benchRequest(b *testing.B, d dialect.Dialect, turns int) *dialect.Request {
	b.Helper()
	var chat bytes.Buffer
	chat.WriteString(`{"model":"m","stream":true,"max_tokens":100,"messages":[{"role":"system","content":"Be brief."}`)
	for i := range turns {
		fmt.Fprintf(&chat, `,{"role":"user","content":%q},{"role":"assistant","content":"ok","tool_calls":[{"id":"c%d","type":"function","function":{"name":"f1","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c%d","content":"done"}`,
			strings.Repeat("word ", 80), i, i)
	}
	chat.WriteString(`],"tools":[`)
	for i := range 20 {
		if i > 0 {
			chat.WriteString(",")
		}
		fmt.Fprintf(&chat, `{"type":"function","function":{"name":"f%d","description":"does a thing","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}}}`, i)
	}
	chat.WriteString(`]}`)
	asked, err := Dialect("openai").ReadRequest("/v1/chat/completions", chat.Bytes())
	if err != nil || d.Name() == "openai" {
		return asked
	}
	tr, err := New(Dialect("openai"), d, asked, Options{Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	path, _, _ := strings.Cut(tr.Path(), "?")
	own, err := d.ReadRequest("/v1"+path, tr.Body())
	if err != nil {
		b.Fatal(err)
	}
	return own
}
