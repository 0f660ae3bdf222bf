package anthropic

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
)

// Models without an output format keep to a schema by the call of a tool whose arguments are the
// answer. The client sees them as the answer's text.
const (
	schemaTool     = "answer_in_json"
	schemaToolSays = "Gives the answer to the user. Call it exactly once, with the whole answer as its arguments."
)

// bySchemaTool reports whether a request is put to a model with the tool.
func bySchemaTool(r *neutral.Request, can abilities) bool {
	return r.Output.Kind == neutral.OutputSchema && !can.schema &&
		(r.Choice.Mode != neutral.ChoiceAny || len(r.Tools) == 0) // a call that is asked for is no answer yet
}

// writeSchemaTool adds the tool. It is the only one that the model may call, but where it may
// call the client's tools too.
func writeSchemaTool(out *request, r *neutral.Request) error {
	if !ofObject(r.Output.Schema) {
		return neutral.Unsupported("response_format", "asks for JSON that is no object, which the model %s cannot be held to", r.Model)
	}
	for i := range out.Tools {
		if out.Tools[i].Name == schemaTool {
			return neutral.Unsupported("response_format", "asks for a JSON schema beside a tool of the name %s, which the model %s is held to it by", schemaTool, r.Model)
		}
	}
	says := schemaToolSays
	if r.Output.Description != "" {
		says += " " + r.Output.Description
	}
	choice := toolChoice{Type: "tool", Name: schemaTool}
	if len(out.Tools) > 0 && r.Choice.Mode != neutral.ChoiceNone {
		choice = toolChoice{Type: "any", DisableParallelToolUse: r.Sequential}
	}
	out.Tools = append(out.Tools, tool{Name: schemaTool, Description: says, InputSchema: r.Output.Schema})
	out.ToolChoice = &choice
	return nil
}

// ofObject reports whether a schema describes objects and nothing else, as the arguments of a
// tool are.
func ofObject(schema []byte) bool {
	found := false
	s := jsonscan.New(schema)
	for ok := s.Object(); ok; ok = s.More('}') {
		if key := s.Key(); string(key) == "type" {
			found = string(s.Text()) == "object"
		} else {
			s.Skip()
		}
	}
	return found && s.Err() == nil
}

// answersByTool reports whether the answer to a request may come as a call of the tool.
func answersByTool(c *neutral.Context) bool { return bySchemaTool(c.Request, abilitiesOf(c.Model)) }

// ended returns the ending of an answer that came as a call of the tool. called says that there
// are other calls.
func ended(e neutral.Ending, called bool) neutral.Ending {
	if e.Finish == dialect.FinishToolCalls && !called {
		e.Finish = dialect.FinishStop
	}
	return e
}
