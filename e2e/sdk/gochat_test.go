package sdk

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"omniroute/e2e/upstream"
)

var openaiStatus = statusOf(func(e *openai.Error) int { return e.StatusCode })

func newOpenAI(base string, hc *http.Client) openai.Client {
	return openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey(clientKey),
		option.WithMaxRetries(0), option.WithHTTPClient(hc))
}

func chatParams(j job) openai.ChatCompletionNewParams {
	parts := []openai.ChatCompletionContentPartUnionParam{openai.TextContentPart(upstream.Prompt)}
	p := openai.ChatCompletionNewParams{Model: j.Model, MaxCompletionTokens: openai.Int(2000)}
	switch j.Scene {
	case "image":
		parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + upstream.Pixel}))
	case "schema":
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "answer", Schema: answerSchema, Strict: openai.Bool(true),
		}}
	case "reasoning":
		p.ReasoningEffort = shared.ReasoningEffortHigh
	case "tools", "parallel":
		for _, t := range tools {
			p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
				Name: t.name, Description: openai.String(t.description), Parameters: object(t.properties, t.required),
			}))
		}
	}
	p.Messages = []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(upstream.System), openai.UserMessage(parts)}
	if j.Stream {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	return p
}

// thoughtOf is the field that compatible vendors have and the SDK has no name for.
func thoughtOf(raw string) string {
	var m struct {
		Thought string `json:"reasoning_content"`
	}
	if json.Unmarshal([]byte(raw), &m) != nil {
		return ""
	}
	return m.Thought
}

func newGoChat(_ *testing.T, base string, hc *http.Client) talk {
	sdk := newOpenAI(base, hc)
	ask := func(t *testing.T, p openai.ChatCompletionNewParams, stream bool) (*openai.ChatCompletion, outcome) {
		var o outcome
		if !stream {
			answer, err := sdk.Chat.Completions.New(t.Context(), p)
			if err != nil {
				return nil, o.failed(err, openaiStatus)
			}
			o.Thought = thoughtOf(answer.Choices[0].Message.RawJSON())
			return answer, o
		}
		s := sdk.Chat.Completions.NewStreaming(t.Context(), p)
		defer s.Close()
		var acc openai.ChatCompletionAccumulator
		for s.Next() {
			chunk := s.Current()
			if !acc.AddChunk(chunk) {
				o.Problem = "the accumulator refuses " + chunk.RawJSON()
			}
			for _, c := range chunk.Choices {
				o.Thought += thoughtOf(c.Delta.RawJSON())
			}
		}
		if err := s.Err(); err != nil {
			if len(acc.Choices) > 0 {
				o.Text = acc.Choices[0].Message.Content
			}
			return nil, o.failed(err, openaiStatus)
		}
		if len(acc.Choices) != 1 {
			o.Problem = "the accumulator has no choice"
			return nil, o
		}
		return &acc.ChatCompletion, o
	}
	return func(t *testing.T, j job) outcome {
		p := chatParams(j)
		answer, o := ask(t, p, j.Stream)
		if answer == nil {
			return o
		}
		message := answer.Choices[0].Message
		o.Text, o.Finish = message.Content, answer.Choices[0].FinishReason
		o.Input, o.Output = answer.Usage.PromptTokens, answer.Usage.CompletionTokens
		if !usesTools(j.Scene) {
			return o
		}
		p.Messages = append(p.Messages, message.ToParam())
		for _, c := range message.ToolCalls {
			o.Calls = append(o.Calls, used{c.ID, c.Function.Name, c.Function.Arguments})
			p.Messages = append(p.Messages, openai.ToolMessage(resultOf(c.Function.Name), c.ID))
		}
		last, problem := ask(t, p, j.Stream)
		if last == nil {
			return problem
		}
		o.Text = last.Choices[0].Message.Content
		return o
	}
}
