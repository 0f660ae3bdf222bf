package sdk

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	"google.golang.org/genai"

	"omniroute/e2e/upstream"
)

var genaiStatus = statusOf(func(e genai.APIError) int { return e.Code })

func genaiConfig(t *testing.T, j job) (*genai.GenerateContentConfig, []*genai.Part) {
	parts := []*genai.Part{genai.NewPartFromText(upstream.Prompt)}
	c := &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText(upstream.System, genai.RoleUser), MaxOutputTokens: 2000,
	}
	switch j.Scene {
	case "image":
		png, err := base64.StdEncoding.DecodeString(upstream.Pixel)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, genai.NewPartFromBytes(png, "image/png"))
	case "schema":
		c.ResponseMIMEType, c.ResponseJsonSchema = "application/json", answerSchema
	case "reasoning":
		c.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true, ThinkingLevel: genai.ThinkingLevelHigh}
	case "tools", "parallel":
		var all []*genai.FunctionDeclaration
		for _, tool := range tools {
			all = append(all, &genai.FunctionDeclaration{Name: tool.name, Description: tool.description, ParametersJsonSchema: object(tool.properties, tool.required)})
		}
		c.Tools = []*genai.Tool{{FunctionDeclarations: all}}
	}
	return c, parts
}

// askGenai sends parts in a chat, which keeps the history, and adds the answer to the outcome.
func askGenai(t *testing.T, chat *genai.Chat, parts []*genai.Part, stream bool, o *outcome) error {
	add := func(r *genai.GenerateContentResponse) {
		if u := r.UsageMetadata; u != nil {
			o.Input, o.Output = int64(u.PromptTokenCount), int64(u.CandidatesTokenCount+u.ThoughtsTokenCount)
		}
		for _, c := range r.Candidates {
			if c.FinishReason != "" {
				o.Finish = string(c.FinishReason)
			}
			if c.Content == nil {
				continue
			}
			for _, p := range c.Content.Parts {
				switch {
				case p.FunctionCall != nil:
					args, err := json.Marshal(p.FunctionCall.Args)
					if err != nil {
						o.Problem = err.Error()
					}
					o.Calls = append(o.Calls, used{p.FunctionCall.ID, p.FunctionCall.Name, string(args)})
				case p.Thought:
					o.Thought += p.Text
				default:
					o.Text += p.Text
				}
			}
		}
	}
	if !stream {
		r, err := chat.Send(t.Context(), parts...)
		if err == nil {
			add(r)
		}
		return err
	}
	for r, err := range chat.SendStream(t.Context(), parts...) {
		if err != nil {
			return err
		}
		add(r)
	}
	return nil
}

func newGoGenai(t *testing.T, base string, hc *http.Client) talk {
	sdk, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: clientKey, Backend: genai.BackendGeminiAPI, HTTPClient: hc, HTTPOptions: genai.HTTPOptions{BaseURL: base},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, j job) outcome {
		config, parts := genaiConfig(t, j)
		chat, err := sdk.Chats.Create(t.Context(), j.Model, config, nil)
		if err != nil {
			return outcome{Error: err.Error()}
		}
		var o outcome
		if err := askGenai(t, chat, parts, j.Stream, &o); err != nil || !usesTools(j.Scene) {
			return o.failed(err, genaiStatus)
		}
		var results []*genai.Part
		for _, c := range o.Calls {
			p := genai.NewPartFromFunctionResponse(c.Name, map[string]any{"output": resultOf(c.Name)})
			p.FunctionResponse.ID = c.ID
			results = append(results, p)
		}
		var last outcome
		if err := askGenai(t, chat, results, j.Stream, &last); err != nil {
			return last.failed(err, genaiStatus)
		}
		if len(chat.History(true)) < 4 {
			o.Problem = "the chat's curated history misses a turn: an answer was not valid for it"
		}
		o.Text = last.Text
		return o
	}
}
