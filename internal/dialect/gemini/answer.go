package gemini

import (
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// ReadAnswer reads a complete answer. Of several candidates the first counts.
func (Dialect) ReadAnswer(c *neutral.Context, body []byte) (*neutral.Answer, bool) {
	var in struct {
		answer
		TotalTokens *int64 `json:"totalTokens"`
	}
	if neutral.Decode(body, &in) != nil {
		return nil, false
	}
	if in.TotalTokens != nil {
		return &neutral.Answer{Count: *in.TotalTokens}, true
	}
	judged := Dialect{}.Inspect(&dialect.Request{}, body)
	if judged.Malformed {
		return nil, false
	}
	out := &neutral.Answer{ID: in.ResponseID, Model: in.ModelVersion, Usage: judged.Usage}
	out.Finish, out.Native = judged.Finish, judged.NativeFinish
	if len(in.Candidates) == 0 {
		return out, true
	}
	parts := in.Candidates[0].Content.Parts
	for i := range parts {
		p := &parts[i]
		switch {
		case p.FunctionCall != nil:
			out.Parts = sealCall(out.Parts, p.ThoughtSignature)
			f := p.FunctionCall
			out.Parts = append(out.Parts, neutral.Part{Kind: neutral.PartCall, Call: neutral.Call{ID: c.CallID(f.ID), Name: f.Name, Arguments: string(neutral.Some(f.Args))}})
		case p.Text != nil && p.Thought:
			out.Parts = thought(out.Parts, *p.Text, p.ThoughtSignature)
		case p.Text != nil:
			out.Parts = append(out.Parts, neutral.Texts(*p.Text)...)
		default:
			out.Parts = append(out.Parts, neutral.Texts(p.shown())...)
		}
	}
	return out, true
}

// shown returns the media of an answer as a text, empty when there is none or it is part of a thought.
func (p *part) shown() string {
	var m neutral.Media
	switch {
	case p.Thought:
		return ""
	case p.InlineData != nil && p.InlineData.Data != "":
		m.Type, m.Data = p.InlineData.MimeType, p.InlineData.Data
	case p.FileData != nil && p.FileData.FileURI != "":
		m.Type, m.URL = p.FileData.MimeType, p.FileData.FileURI
	default:
		return ""
	}
	return m.Shown()
}

// sealCall puts a call's signature to the thought before it, or else before the call.
func sealCall(parts []neutral.Part, signature string) []neutral.Part {
	if signature == "" {
		return parts
	}
	return thought(parts, "", signature)
}

// WriteAnswer makes a complete answer.
func (Dialect) WriteAnswer(c *neutral.Context, a *neutral.Answer) []byte {
	if c.Request.Operation == dialect.OpCount {
		return neutral.Encode(struct {
			TotalTokens int64 `json:"totalTokens"`
		}{a.Count})
	}
	parts := []part{}
	signature := ""
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Kind {
		case neutral.PartText, neutral.PartRefusal:
			if p.Text != "" {
				parts = append(parts, part{Text: &p.Text})
			}
		case neutral.PartReasoning:
			if p.Text == "" {
				signature = p.Seal.Wrap(name)
				continue
			}
			parts = append(parts, part{Text: &p.Text, Thought: true, ThoughtSignature: p.Seal.Wrap(name)})
		case neutral.PartCall:
			if cutOff(&p.Call, a.Finish) {
				continue
			}
			parts = append(parts, part{FunctionCall: &functionCall{ID: p.Call.ID, Name: p.Call.Name, Args: p.Call.Object()}, ThoughtSignature: signature})
			signature = ""
		}
	}
	out := answer{UsageMetadata: usageOf(a.Usage), ModelVersion: c.ModelOr(a.Model), ResponseID: a.ID,
		Candidates: []candidate{{Content: content{Role: "model", Parts: parts}, FinishReason: finishWord(a.Finish)}}}
	if out.ResponseID == "" {
		out.ResponseID = c.NewID("")
	}
	return neutral.Encode(out)
}

// cutOff reports whether the limit of tokens ended the answer inside a call. Gemini's calls are
// whole, and its clients would make this one.
func cutOff(c *neutral.Call, f dialect.Finish) bool {
	return f == dialect.FinishLength && c.Arguments != "" && !json.Valid([]byte(c.Arguments))
}

// finishWord returns Google's word for an ending.
func finishWord(f dialect.Finish) string {
	switch f {
	case dialect.FinishLength:
		return "MAX_TOKENS"
	case dialect.FinishFilter:
		return "SAFETY"
	}
	return "STOP"
}
