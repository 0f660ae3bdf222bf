package responses

import (
	"encoding/json"
	"fmt"
	"strings"

	"omniroute/internal/dialect/neutral"
)

// offered are tools that the upstream runs by itself and that agents offer with every request. A
// model does without them, so that they are left out where they do not exist.
func offered(kind string) bool {
	switch kind {
	case "web_search", "web_search_preview", "namespace", "image_generation", "tool_search":
		return true
	}
	return strings.HasPrefix(kind, "web_search_")
}

func readTools(out *neutral.Request, in *request) {
	for i, t := range in.Tools {
		switch {
		case t.Type == "function":
			out.Tools = append(out.Tools, neutral.Tool{Name: t.Name, Description: t.Description, Schema: neutral.Some(t.Parameters), Strict: strict(t.Strict)})
		case t.Type == "custom":
			own := &neutral.Custom{}
			if f := t.Format; f != nil {
				own.Syntax, own.Definition = f.Syntax, f.Definition
			}
			out.Tools = append(out.Tools, neutral.Tool{Name: t.Name, Description: t.Description, Custom: own})
		case !offered(t.Type):
			native(out, fmt.Sprintf("tools[%d]", i), fmt.Sprintf("is a tool of type %q, which only OpenAI's own API has", t.Type))
		}
	}
	out.Sequential = in.ParallelToolCalls != nil && !*in.ParallelToolCalls
	readChoice(out, in.ToolChoice)
	if out.Choice.Mode == neutral.ChoiceAny && len(out.Tools) == 0 && len(in.Tools) > 0 {
		native(out, "tool_choice", "asks for a call of a tool that only OpenAI's own API has")
	}
}

// strict makes the API's default visible: a tool is strict unless it says otherwise.
func strict(given *bool) *bool {
	if given == nil {
		return neutral.True(true)
	}
	return given
}

func readChoice(out *neutral.Request, raw json.RawMessage) {
	switch neutral.First(raw) {
	case '"':
		out.Choice.ReadWord(neutral.Word(raw))
	case '{':
		var c struct {
			Type, Name, Mode string
			Tools            []struct{ Type, Name string }
		}
		if neutral.Decode(raw, &c) != nil {
			return
		}
		switch c.Type {
		case "function", "custom":
			out.Choice = neutral.Choice{Mode: neutral.ChoiceAny, Names: []string{c.Name}}
		case "allowed_tools":
			out.Choice.Mode = neutral.ChoiceAny
			if c.Mode == "auto" {
				out.Choice.Mode = neutral.ChoiceAuto
			}
			for _, t := range c.Tools {
				if t.Type == "function" || t.Type == "custom" {
					out.Choice.Names = append(out.Choice.Names, t.Name)
				}
			}
			if len(out.Choice.Names) == 0 && len(c.Tools) > 0 { // none of the allowed ones is left
				if out.Choice.Mode == neutral.ChoiceAuto {
					out.Choice.Mode = neutral.ChoiceNone
				} else {
					native(out, "tool_choice", "asks for a call of a tool that only OpenAI's own API has")
				}
			}
		default:
			native(out, "tool_choice", fmt.Sprintf("asks for a tool of type %q, which only OpenAI's own API has", c.Type))
		}
	}
}
