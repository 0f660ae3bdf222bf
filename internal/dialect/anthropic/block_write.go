package anthropic

import (
	"strconv"

	"omniroute/internal/dialect/neutral"
)

// writer gives calls ids that Anthropic takes: of plain characters, and each once in a conversation. Some models
// count the calls of every answer from the same number.
type writer struct {
	ids  map[string]string // the present ids of calls, by their own
	used map[string]bool
}

func (w *writer) id(own string) string {
	plain := neutral.PlainID(own)
	id := plain
	for k := 2; w.used[id]; k++ {
		id = plain + "_" + strconv.Itoa(k)
	}
	w.ids[own], w.used[id] = id, true
	return id
}

func appendText(list blocks, p *neutral.Part) blocks {
	if p.Text == "" { // refused by Anthropic
		return list
	}
	return append(list, block{Type: "text", Text: &p.Text, CacheControl: p.Cache})
}

// writeBlocks puts results of tools first, where Anthropic wants them.
func (w *writer) blocks(parts []neutral.Part) (blocks, error) {
	results := 0
	for i := range parts {
		if parts[i].Kind == neutral.PartResult {
			results++
		}
	}
	list := make(blocks, len(parts))
	first, out := list[:0:results], list[results:results] // one behind the other
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case neutral.PartText, neutral.PartRefusal:
			out = appendText(out, p)
		case neutral.PartImage, neutral.PartFile:
			b, err := writeMedia(p)
			if err != nil {
				return nil, err
			}
			out = append(out, b)
		case neutral.PartAudio:
			return nil, neutral.Unsupported("messages", "has sound, which Anthropic's API does not take")
		case neutral.PartCall:
			out = append(out, block{Type: "tool_use", ID: w.id(p.Call.ID), Name: p.Call.Name, Input: p.Call.Object(), CacheControl: p.Cache})
		case neutral.PartResult:
			b := block{Type: "tool_result", ToolUseID: w.ids[p.Result.ID], IsError: p.Result.Error, CacheControl: p.Cache}
			if b.ToolUseID == "" { // of a call that is not in the conversation
				b.ToolUseID = neutral.PlainID(p.Result.ID)
			}
			var err error
			if b.Content, err = w.blocks(p.Result.Parts); err != nil {
				return nil, err
			}
			first = append(first, b)
		case neutral.PartReasoning:
			out = appendThought(out, p)
		}
	}
	return list[:len(first)+len(out)], nil
}

// appendThought gives Anthropic its own thoughts back, and only those.
func appendThought(list blocks, p *neutral.Part) blocks {
	switch {
	case p.Seal.Origin != name || p.Seal.Value == "":
		return list
	case p.Seal.Redacted:
		return append(list, block{Type: "redacted_thinking", Data: p.Seal.Value})
	}
	return append(list, block{Type: "thinking", Thinking: &p.Text, Signature: p.Seal.Value})
}

func writeMedia(p *neutral.Part) (block, error) {
	m := &p.Media
	b := block{Type: "image", CacheControl: p.Cache}
	if p.Kind == neutral.PartFile {
		b.Type, b.Title = "document", m.Name
	}
	switch {
	case m.Data != "" && p.Kind == neutral.PartFile && m.Type != "application/pdf" && m.Type != "":
		return b, neutral.Unsupported("messages", "has a document of type %s; Anthropic's API takes PDF and plain text", m.Type)
	case m.Data != "":
		b.Source = &source{Type: "base64", MediaType: m.Type, Data: m.Data}
		if m.Type == "" && p.Kind == neutral.PartFile {
			b.Source.MediaType = "application/pdf"
		}
	case m.URL != "":
		b.Source = &source{Type: "url", URL: m.URL}
	case p.Kind == neutral.PartFile:
		b.Source = &source{Type: "text", MediaType: "text/plain", Data: m.Text}
	default:
		return b, neutral.Unsupported("messages", "has an image without data or address")
	}
	return b, nil
}
