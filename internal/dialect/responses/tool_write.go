package responses

import (
	"encoding/json"

	"omniroute/internal/dialect/neutral"
)

func (w *writer) tools(r *neutral.Request) {
	out := w.out
	for i := range r.Tools {
		t := &r.Tools[i]
		if t.Custom != nil && w.free {
			out.Tools = append(out.Tools, customTool(t))
			continue
		}
		own := tool{Type: "function", Name: t.Name, Description: t.Told(), Parameters: t.ObjectSchema(), Strict: t.Strict}
		if own.Strict == nil { // the API's own default is the other one
			own.Strict = neutral.True(false)
		}
		out.Tools = append(out.Tools, own)
	}
	if len(out.Tools) == 0 {
		return
	}
	if r.Sequential {
		out.ParallelToolCalls = neutral.True(false)
	}
	out.ToolChoice = w.choice(r)
}

func customTool(t *neutral.Tool) tool {
	out := tool{Type: "custom", Name: t.Name, Description: t.Description}
	if c := t.Custom; c.Definition != "" {
		out.Format = &inputFormat{Type: "grammar", Syntax: c.Syntax, Definition: c.Definition}
	}
	return out
}

func (w *writer) choice(r *neutral.Request) json.RawMessage {
	type ref struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	refTo := func(name string) ref {
		if w.free && r.Custom(name) {
			return ref{"custom", name}
		}
		return ref{"function", name}
	}
	c := &r.Choice
	mode := c.Word()
	if mode == "" {
		return nil
	}
	switch {
	case len(c.Names) == 1 && c.Mode == neutral.ChoiceAny:
		return neutral.Encode(refTo(c.Names[0]))
	case len(c.Names) > 0:
		var list []ref
		for _, n := range c.Names {
			list = append(list, refTo(n))
		}
		return neutral.Encode(map[string]any{"type": "allowed_tools", "mode": mode, "tools": list})
	}
	return neutral.Encode(mode)
}
