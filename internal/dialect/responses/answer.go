package responses

import (
	"cmp"
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// ReadAnswer reads a complete answer.
func (Dialect) ReadAnswer(c *neutral.Context, body []byte) (*neutral.Answer, bool) {
	var in struct {
		ID, Model   string
		Status      string
		Output      []item
		InputTokens *int64 `json:"input_tokens"`
	}
	if neutral.Decode(body, &in) != nil {
		return nil, false
	}
	if in.InputTokens != nil && in.Output == nil {
		return &neutral.Answer{Count: *in.InputTokens}, true
	}
	if in.Output == nil {
		return nil, false
	}
	judged := Dialect{}.Inspect(&dialect.Request{}, body)
	out := &neutral.Answer{ID: in.ID, Model: in.Model, Usage: judged.Usage}
	for i := range in.Output {
		out.Parts = append(out.Parts, readOutput(c, &in.Output[i])...)
	}
	out.Finish, out.Native = judged.Finish, judged.NativeFinish
	return out, true
}

// readOutput reads an item of the output. Items of the upstream's own tools say nothing here.
func readOutput(c *neutral.Context, it *item) []neutral.Part {
	var parts []neutral.Part
	switch it.Type {
	case "message":
		for i := range it.Content {
			p := &it.Content[i]
			switch {
			case p.Type == "refusal" && p.Refusal != nil:
				parts = append(parts, neutral.Part{Kind: neutral.PartRefusal, Text: *p.Refusal})
			case p.text() != "":
				parts = append(parts, neutral.Part{Text: p.text()})
			}
		}
	case "reasoning":
		p := neutral.Part{Kind: neutral.PartReasoning, Seal: unwrap(it)}
		if it.Summary != nil {
			p.Text = summaryText(*it.Summary)
		}
		if p.Text == "" { // models whose thoughts are open
			p.Text = summaryText(it.Content)
		}
		if p.Text != "" || p.Seal.Value != "" {
			parts = append(parts, p)
		}
	case "image_generation_call":
		if it.Result != "" {
			m := neutral.Media{Type: "image/" + cmp.Or(it.OutputFormat, "png"), Data: it.Result}
			parts = append(parts, neutral.Part{Text: m.Shown()})
		}
	case "function_call", "custom_tool_call":
		call := readCall(it)
		call.ID = c.CallID(call.ID)
		parts = append(parts, neutral.Part{Kind: neutral.PartCall, Call: call})
	}
	return parts
}

// envelope is a response object with every member that strict clients want.
type envelope struct {
	ID                 string          `json:"id"`
	Object             string          `json:"object"`
	CreatedAt          int64           `json:"created_at"`
	CompletedAt        *int64          `json:"completed_at"`
	Status             string          `json:"status"`
	Background         bool            `json:"background"`
	Error              *struct{}       `json:"error"`
	IncompleteDetails  *incomplete     `json:"incomplete_details"`
	Instructions       json.RawMessage `json:"instructions"`
	MaxOutputTokens    json.RawMessage `json:"max_output_tokens"`
	MaxToolCalls       json.RawMessage `json:"max_tool_calls"`
	Model              string          `json:"model"`
	Output             []item          `json:"output"`
	ParallelToolCalls  json.RawMessage `json:"parallel_tool_calls"`
	PreviousResponseID *string         `json:"previous_response_id"`
	PromptCacheKey     json.RawMessage `json:"prompt_cache_key"`
	Reasoning          json.RawMessage `json:"reasoning"`
	SafetyIdentifier   json.RawMessage `json:"safety_identifier"`
	ServiceTier        string          `json:"service_tier"`
	Store              bool            `json:"store"`
	Temperature        json.RawMessage `json:"temperature"`
	Text               json.RawMessage `json:"text"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	Tools              json.RawMessage `json:"tools"`
	TopLogprobs        int             `json:"top_logprobs"`
	TopP               json.RawMessage `json:"top_p"`
	PresencePenalty    int             `json:"presence_penalty"`
	FrequencyPenalty   int             `json:"frequency_penalty"`
	Truncation         string          `json:"truncation"`
	Usage              *usage          `json:"usage"`
	User               json.RawMessage `json:"user"`
	Metadata           json.RawMessage `json:"metadata"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

// newEnvelope returns a response that has begun. It repeats what the client has asked for.
func newEnvelope(c *neutral.Context, id, model string) *envelope {
	echo := func(name, otherwise string) json.RawMessage {
		if raw := c.Request.Echo[name]; raw != nil && neutral.First(raw) != 'n' {
			return raw
		}
		return json.RawMessage(otherwise)
	}
	return &envelope{ID: id, Object: "response", CreatedAt: c.Now.Unix(), Status: "in_progress", Model: model, Output: []item{},
		Instructions: echo("instructions", "null"), MaxOutputTokens: echo("max_output_tokens", "null"), MaxToolCalls: echo("max_tool_calls", "null"),
		ParallelToolCalls: echo("parallel_tool_calls", "true"), PromptCacheKey: echo("prompt_cache_key", "null"),
		Reasoning: echo("reasoning", `{"effort":null,"summary":null}`), SafetyIdentifier: echo("safety_identifier", "null"), ServiceTier: "default",
		Temperature: echo("temperature", "1"), Text: echo("text", `{"format":{"type":"text"}}`), ToolChoice: echo("tool_choice", `"auto"`),
		Tools: echo("tools", "[]"), TopP: echo("top_p", "1"), Truncation: "disabled", User: echo("user", "null"), Metadata: echo("metadata", "{}")}
}

// end completes a response.
func (e *envelope) end(c *neutral.Context, ending neutral.Ending, u dialect.Usage) {
	e.Status = "completed"
	switch ending.Finish {
	case dialect.FinishLength:
		e.Status, e.IncompleteDetails = "incomplete", &incomplete{"max_output_tokens"}
	case dialect.FinishFilter:
		e.Status, e.IncompleteDetails = "incomplete", &incomplete{"content_filter"}
	default:
		e.CompletedAt = neutral.Integer(c.Now.Unix())
	}
	e.Usage = usageOf(u)
}

// WriteAnswer makes a complete answer.
func (Dialect) WriteAnswer(c *neutral.Context, a *neutral.Answer) []byte {
	if c.Request.Operation == dialect.OpCount {
		return neutral.Encode(struct {
			Object      string `json:"object"`
			InputTokens int64  `json:"input_tokens"`
		}{"response.input_tokens", a.Count})
	}
	id := a.ID
	if id == "" {
		id = c.NewID("resp_")
	}
	e := newEnvelope(c, id, c.ModelOr(a.Model))
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Kind {
		case neutral.PartText, neutral.PartRefusal:
			if p.Text == "" {
				continue
			}
			if n := len(e.Output); n == 0 || e.Output[n-1].Type != "message" {
				e.Output = append(e.Output, newMessage(c))
			}
			m := &e.Output[len(e.Output)-1]
			m.Content = append(m.Content, said(p.Kind == neutral.PartRefusal, p.Text))
		case neutral.PartReasoning:
			e.Output = append(e.Output, newThought(c, p.Text, p.Seal))
		case neutral.PartCall:
			e.Output = append(e.Output, newCall(c, &p.Call))
			if a.Finish == dialect.FinishLength && !whole(&p.Call) {
				e.Output[len(e.Output)-1].Status = "incomplete"
			}
		}
	}
	e.end(c, a.Ending, a.Usage)
	return neutral.Encode(e)
}

func newMessage(c *neutral.Context) item {
	return item{Type: "message", ID: c.NewID("msg_"), Status: "completed", Role: "assistant"}
}

func said(refused bool, text string) piece {
	if refused {
		return piece{Type: "refusal", Refusal: &text}
	}
	return piece{Type: "output_text", Text: &text, Annotations: json.RawMessage("[]"), Logprobs: json.RawMessage("[]")}
}

func newThought(c *neutral.Context, text string, seal neutral.Seal) item {
	summary := []piece{}
	if text != "" {
		summary = append(summary, piece{Type: "summary_text", Text: &text})
	}
	return item{Type: "reasoning", ID: c.NewID("rs_"), Summary: &summary, EncryptedContent: seal.WrapAny(name)}
}

func newCall(c *neutral.Context, call *neutral.Call) item {
	out := item{Type: "function_call", Status: "completed", CallID: call.ID, Name: call.Name}
	if call.Custom {
		text := call.Free()
		out.Type, out.ID, out.Input = "custom_tool_call", c.NewID("ctc_"), &text
		return out
	}
	args := cmp.Or(call.Arguments, "{}")
	out.ID, out.Arguments = c.NewID("fc_"), &args
	return out
}

// whole reports whether a call was not cut by the token limit.
func whole(call *neutral.Call) bool {
	if call.Custom {
		var f neutral.FreeText
		f.Add(call.Arguments)
		return f.Whole()
	}
	return call.Arguments == "" || json.Valid([]byte(call.Arguments))
}
