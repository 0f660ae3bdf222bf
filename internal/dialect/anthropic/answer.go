package anthropic

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// count is the answer to a request for the number of tokens.
type count struct {
	InputTokens *int64 `json:"input_tokens"`
}

// ReadAnswer reads a complete answer.
func (Dialect) ReadAnswer(c *neutral.Context, body []byte) (*neutral.Answer, bool) {
	var in struct {
		answer
		count
	}
	if neutral.Decode(body, &in) != nil {
		return nil, false
	}
	if in.InputTokens != nil && in.Content == nil {
		return &neutral.Answer{Count: *in.InputTokens}, true
	}
	if in.Content == nil && in.StopReason == nil {
		return nil, false
	}
	out := &neutral.Answer{ID: in.ID, Model: in.Model}
	byTool, answered := answersByTool(c), false
	for i := range in.Content {
		b := &in.Content[i]
		p := neutral.Part{}
		switch b.Type {
		case "text":
			p.Text = b.text()
		case "thinking":
			p.Kind = neutral.PartReasoning
			if b.Thinking != nil {
				p.Text = *b.Thinking
			}
			p.Seal = neutral.Unwrap(name, b.Signature)
		case "redacted_thinking":
			p.Kind = neutral.PartReasoning
			p.Seal = neutral.Seal{Origin: name, Value: b.Data, Redacted: true}
		case "tool_use":
			if byTool && b.Name == schemaTool {
				answered, p.Text = true, string(neutral.Some(b.Input))
				break
			}
			p.Kind = neutral.PartCall
			p.Call = neutral.Call{ID: c.CallID(b.ID), Name: b.Name, Arguments: string(neutral.Some(b.Input))}
		default: // blocks of the upstream's own tools, fallbacks, and what is to come
			continue
		}
		out.Parts = append(out.Parts, p)
	}
	if in.StopReason != nil {
		out.Native = *in.StopReason
		out.Finish = finishOf(out.Native)
		if answered {
			out.Ending = ended(out.Ending, neutral.HasCall(out.Parts))
		}
	}
	if in.StopSequence != nil {
		out.Stop = *in.StopSequence
	}
	if in.Usage != nil {
		out.Usage = in.Usage.neutral()
	}
	return out, true
}

// WriteAnswer makes a complete answer.
func (Dialect) WriteAnswer(c *neutral.Context, a *neutral.Answer) []byte {
	if c.Request.Operation == dialect.OpCount {
		return neutral.Encode(count{&a.Count})
	}
	out := answer{ID: a.ID, Type: "message", Role: "assistant", Model: c.ModelOr(a.Model), Content: blocks{}, Usage: wireUsage(a.Usage)}
	if out.ID == "" {
		out.ID = c.NewID("msg_")
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Kind {
		case neutral.PartText, neutral.PartRefusal:
			out.Content = appendText(out.Content, p)
		case neutral.PartReasoning:
			b := block{Type: "thinking", Thinking: &p.Text, Signature: p.Seal.WrapAny(name)}
			out.Content = append(out.Content, b)
		case neutral.PartCall:
			out.Content = append(out.Content, block{Type: "tool_use", ID: neutral.PlainID(p.Call.ID), Name: p.Call.Name, Input: p.Call.Object()})
		}
	}
	reason := stopReason(a.Ending, neutral.HasCall(a.Parts), neutral.Refused(a.Parts))
	out.StopReason = &reason
	if reason == "stop_sequence" {
		out.StopSequence = &a.Stop
	}
	return neutral.Encode(out)
}
