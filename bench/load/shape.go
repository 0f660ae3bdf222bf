package load

import (
	"bytes"
	"fmt"
	"strings"
)

// Shape is a kind of request.
type Shape struct {
	Name string
	// Stream says that a streamed answer is asked for.
	Stream bool
	// Body makes the request's body for a model name.
	body func(model string) []byte
}

// Body returns the request for a model.
func (s Shape) Body(model string) []byte { return s.body(model) }

// The shapes of the benchmarks.
var (
	// Chat is a plain question of 1 KiB.
	Chat = Shape{Name: "chat", body: func(model string) []byte { return question(model, false, 1<<10) }}
	// Stream is the same question with a streamed answer.
	Stream = Shape{Name: "stream", Stream: true, body: func(model string) []byte { return question(model, true, 1<<10) }}
	// Agent is the turn of a coding agent: tools and a long history, 100 KiB in all.
	Agent = Shape{Name: "agent", body: func(model string) []byte { return agent(model, false) }}
	// AgentStream is the same turn with a streamed answer, as agents ask for it.
	AgentStream = Shape{Name: "agent-stream", Stream: true, body: func(model string) []byte { return agent(model, true) }}
)

// Shapes returns them all.
func Shapes() []Shape { return []Shape{Chat, Stream, Agent, AgentStream} }

// question pads a one-message request to size bytes.
func question(model string, stream bool, size int) []byte {
	make := func(text string) []byte {
		return fmt.Appendf(nil, `{"model":%q,"stream":%v,"temperature":0.7,"max_tokens":512,"messages":[`+
			`{"role":"system","content":"You are a careful assistant."},{"role":"user","content":%q}]}`, model, stream, text)
	}
	return make(prose(size - len(make(""))))
}

// agent builds a request of 100 KiB: ten tools, then turns of text, tool calls and tool results.
func agent(model string, stream bool) []byte {
	const size = 100 << 10
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"model":%q,"stream":%v,"tool_choice":"auto","tools":[`, model, stream)
	for i := range 10 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"function","function":{"name":"tool_%d","description":%q,"parameters":{"type":"object",`+
			`"properties":{"path":{"type":"string","description":"A path in the work tree."},"lines":{"type":"array","items":{"type":"integer"}}},"required":["path"]}}}`,
			i, prose(300))
	}
	b.WriteString(`],"messages":[{"role":"system","content":"You work in a code base."}`)
	for i := 0; b.Len() < size-2600; i++ {
		fmt.Fprintf(&b, `,{"role":"user","content":%q}`, prose(200))
		fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"tool_%d","arguments":"{\"path\":\"src/main.go\",\"lines\":[1,2,3]}"}}]}`, i, i%10)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":%q}`, i, code(1500))
	}
	const end = `,{"role":"user","content":""}]}`
	fmt.Fprintf(&b, `,{"role":"user","content":%q}]}`, prose(size-b.Len()-len(end)))
	return b.Bytes()
}

func prose(n int) string {
	const text = "The gateway keeps requests flowing while upstream providers fail, and says why it did what it did. "
	return repeat(text, n)
}

// code has what makes JSON strings expensive: quotes, newlines, backslashes.
func code(n int) string {
	return repeat("if err != nil {\n\treturn fmt.Errorf(\"open %q: %w\", path, err)\n}\n", n)
}

func repeat(text string, n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(text, n/len(text)+1)[:n]
}
