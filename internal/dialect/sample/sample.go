// Package sample holds requests and answers of the usual size and shape, for measuring what
// dialects cost. Nothing that serves traffic imports it.
package sample

import (
	"bytes"
	"fmt"
	"strings"
)

// Dialects are the names of the dialects that there are chunks of.
var Dialects = []string{"openai", "responses", "anthropic", "gemini"}

// Agent returns a chat request as an agent sends it: for each turn a text of the user's of 400 bytes, a call
// and its result, and 20 tools. 100 turns make some 70 KiB.
func Agent(turns int) []byte {
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
	return chat.Bytes()
}

// Chunk returns an event of a dialect with one token of text, as its vendor frames it.
func Chunk(dialect string) string {
	switch dialect {
	case "openai":
		return `data: {"id":"chatcmpl-AbCdEf","object":"chat.completion.chunk","created":1700000000,"model":"gpt-5.2","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"obfuscation":"abc"}` + "\n\n"
	case "responses":
		return "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","sequence_number":12,"item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":" token","logprobs":[]}` + "\n\n"
	case "anthropic":
		return "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}` + "\n\n"
	}
	return `data: {"candidates":[{"content":{"parts":[{"text":" token"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":29,"candidatesTokenCount":15,"totalTokenCount":89,"promptTokensDetails":[{"modality":"TEXT","tokenCount":29}]},"modelVersion":"gemini-3-pro","responseId":"b36LacjwM668"}` + "\n\n"
}
