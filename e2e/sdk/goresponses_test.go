package sdk

import (
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"omniroute/e2e/upstream"
)

func responsesParams(j job) responses.ResponseNewParams {
	content := responses.ResponseInputMessageContentListParam{responses.ResponseInputContentParamOfInputText(upstream.Prompt)}
	p := responses.ResponseNewParams{
		Model: j.Model, Instructions: openai.String(upstream.System), MaxOutputTokens: openai.Int(2000), Store: openai.Bool(false),
	}
	switch j.Scene {
	case "image":
		image := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
		image.OfInputImage.ImageURL = openai.String("data:image/png;base64," + upstream.Pixel)
		content = append(content, image)
	case "schema":
		p.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("answer", answerSchema)
	case "reasoning":
		p.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortHigh, Summary: shared.ReasoningSummaryAuto}
	case "tools", "parallel":
		for _, t := range tools {
			p.Tools = append(p.Tools, responses.ToolParamOfFunction(t.name, object(t.properties, t.required), false))
		}
	}
	p.Input.OfInputItemList = responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser)}
	return p
}

// readResponses follows a stream to its response, and compares what came piece by piece with it.
func readResponses(t *testing.T, sdk openai.Client, p responses.ResponseNewParams) (*responses.Response, outcome) {
	var o outcome
	s := sdk.Responses.NewStreaming(t.Context(), p)
	defer s.Close()
	var final *responses.Response
	var text, arguments strings.Builder
	number := int64(0)
	for s.Next() {
		e := s.Current()
		if e.SequenceNumber != number {
			o.Problem = "the sequence is broken at " + e.RawJSON()
		}
		number++
		switch e.Type {
		case "response.output_text.delta":
			text.WriteString(e.Delta)
		case "response.function_call_arguments.delta":
			arguments.WriteString(e.Delta)
		case "response.completed", "response.incomplete":
			final = &e.Response
		case "response.failed":
			o.Error, o.Text = "response.failed: "+e.Response.Error.Message, text.String()
			return nil, o
		case "error":
			o.Error, o.Text = "error: "+e.Message, text.String()
			return nil, o
		}
	}
	if err := s.Err(); err != nil {
		o.Text = text.String()
		return nil, o.failed(err, openaiStatus)
	}
	if final == nil {
		o.Problem = "the stream has no final response"
		return nil, o
	}
	whole := ""
	for _, item := range final.Output {
		if item.Type == "function_call" {
			whole += item.Arguments.OfString
		}
	}
	if final.OutputText() != text.String() || whole != arguments.String() {
		o.Problem = "the deltas are not what the final response has"
	}
	return final, o
}

func newGoResponses(_ *testing.T, base string, hc *http.Client) talk {
	sdk := newOpenAI(base, hc)
	ask := func(t *testing.T, p responses.ResponseNewParams, stream bool) (*responses.Response, outcome) {
		if stream {
			return readResponses(t, sdk, p)
		}
		answer, err := sdk.Responses.New(t.Context(), p)
		if err != nil {
			return nil, outcome{}.failed(err, openaiStatus)
		}
		return answer, outcome{}
	}
	return func(t *testing.T, j job) outcome {
		p := responsesParams(j)
		answer, o := ask(t, p, j.Stream)
		if answer == nil {
			return o
		}
		o.Text, o.Finish = answer.OutputText(), string(answer.Status)
		o.Input, o.Output = answer.Usage.InputTokens, answer.Usage.OutputTokens
		input := p.Input.OfInputItemList
		for _, item := range answer.Output {
			switch item.Type {
			case "message":
				m := item.AsMessage().ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfOutputMessage: &m})
			case "reasoning":
				r := item.AsReasoning()
				for _, s := range r.Summary {
					o.Thought += s.Text
				}
				m := r.ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfReasoning: &m})
			case "function_call":
				c := item.AsFunctionCall()
				o.Calls = append(o.Calls, used{c.CallID, c.Name, c.Arguments})
				m := c.ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &m})
			}
		}
		if !usesTools(j.Scene) {
			return o
		}
		for _, c := range o.Calls {
			out := responses.ResponseInputItemParamOfFunctionCallOutput(resultOf(c.Name))
			out.OfFunctionCallOutput.CallID = openai.String(c.ID)
			input = append(input, out)
		}
		p.Input.OfInputItemList = input
		last, problem := ask(t, p, j.Stream)
		if last == nil {
			return problem
		}
		o.Text = last.OutputText()
		return o
	}
}
