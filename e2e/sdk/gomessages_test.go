package sdk

import (
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"omniroute/e2e/upstream"
)

var anthropicStatus = statusOf(func(e *anthropic.Error) int { return e.StatusCode })

func messagesParams(j job) anthropic.MessageNewParams {
	content := []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(upstream.Prompt)}
	p := anthropic.MessageNewParams{
		Model: j.Model, MaxTokens: 4000, System: []anthropic.TextBlockParam{{Text: upstream.System}},
	}
	switch j.Scene {
	case "image":
		content = append(content, anthropic.NewImageBlockBase64("image/png", upstream.Pixel))
	case "schema":
		p.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: answerSchema}
	case "reasoning":
		p.Thinking = anthropic.ThinkingConfigParamOfEnabled(2048)
	case "tools", "parallel":
		for _, t := range tools {
			tool := anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: t.properties, Required: t.required}, t.name)
			tool.OfTool.Description = anthropic.String(t.description)
			p.Tools = append(p.Tools, tool)
		}
	}
	p.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(content...)}
	return p
}

// askMessages returns the message, or nil and what went wrong.
func askMessages(t *testing.T, sdk anthropic.Client, p anthropic.MessageNewParams, stream bool) (*anthropic.Message, outcome) {
	var o outcome
	if !stream {
		m, err := sdk.Messages.New(t.Context(), p)
		if err != nil {
			return nil, o.failed(err, anthropicStatus)
		}
		return m, o
	}
	s := sdk.Messages.NewStreaming(t.Context(), p)
	defer s.Close()
	var m anthropic.Message
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			o.Problem = err.Error()
		}
	}
	if err := s.Err(); err != nil {
		for _, b := range m.Content {
			o.Text += b.Text
		}
		return nil, o.failed(err, anthropicStatus)
	}
	return &m, o
}

// readMessage fills the outcome with a message.
func (o *outcome) readMessage(m *anthropic.Message) {
	o.Text, o.Finish = "", string(m.StopReason)
	o.Input, o.Output = m.Usage.InputTokens, m.Usage.OutputTokens
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			o.Text += b.Text
		case "thinking":
			o.Thought += b.Thinking
		case "tool_use":
			o.Calls = append(o.Calls, used{b.ID, b.Name, string(b.Input)})
		}
	}
}

func newGoMessages(_ *testing.T, base string, hc *http.Client) talk {
	sdk := newAnthropic(base, hc)
	return func(t *testing.T, j job) outcome {
		p := messagesParams(j)
		m, o := askMessages(t, sdk, p, j.Stream)
		if m == nil {
			return o
		}
		o.readMessage(m)
		if !usesTools(j.Scene) {
			return o
		}
		var results []anthropic.ContentBlockParamUnion
		for _, c := range o.Calls {
			results = append(results, anthropic.NewToolResultBlock(c.ID, resultOf(c.Name), false))
		}
		p.Messages = append(p.Messages, m.ToParam(), anthropic.NewUserMessage(results...))
		last, problem := askMessages(t, sdk, p, j.Stream)
		if last == nil {
			return problem
		}
		var end outcome
		end.readMessage(last)
		o.Text = end.Text
		return o
	}
}

func newAnthropic(base string, hc *http.Client) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(base), option.WithAPIKey(clientKey),
		option.WithMaxRetries(0), option.WithHTTPClient(hc))
}
