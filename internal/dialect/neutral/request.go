package neutral

import (
	"bytes"
	"encoding/json"
	"slices"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
)

// Request is what a client asks of a model.
type Request struct {
	// Operation is OpGenerate, or OpCount for the number of tokens that the rest would cost.
	Operation dialect.Operation
	Model     string
	Stream    bool
	// IncludeUsage: a chat client wants usage at the end of its stream.
	IncludeUsage bool

	// System is what stands above the conversation, texts only. System turns inside the
	// conversation are among the Turns.
	System []Part
	Turns  []Turn

	Tools  []Tool
	Choice Choice
	// Functions: a chat client asked by the older members, and looks for one call in the older place.
	Functions bool
	// Sequential: at most one tool call in an answer.
	Sequential bool

	Output    Output
	Reasoning Reasoning

	MaxTokens            *int64
	Temperature          json.Number // empty means unset, as for all numbers here
	TopP, TopK           json.Number
	Seed                 json.Number
	Frequency, Presence  json.Number // penalties
	Stop                 []string
	User, Key, Verbosity string // hints: the end user, a cache key, how long an answer should be

	// Echo are members of the client's request that its dialect repeats in the answer. They do not
	// point into the request's body, which may be gone by then.
	Echo map[string]json.RawMessage
	// Native are members of the client's request that change the answer and that only the
	// client's own dialect can express.
	Native []UnsupportedError
}

// Asked returns what answers to the request depend on: all but the conversation, and of the tools what
// kind they are. The rest may be much, and an answer takes long.
func (r *Request) Asked() *Request {
	asked := *r
	asked.System, asked.Turns, asked.Tools = nil, nil, make([]Tool, len(r.Tools))
	for i := range r.Tools {
		asked.Tools[i] = Tool{Name: r.Tools[i].Name, Custom: r.Tools[i].Custom}
	}
	return &asked
}

// Role says who speaks in a turn.
type Role uint8

// The roles. Results of tools are parts of user turns.
const (
	RoleUser Role = iota
	RoleAssistant
	RoleSystem
)

// Turn is one message.
type Turn struct {
	Role  Role
	Parts []Part
}

// Tool is a function that the model may call.
type Tool struct {
	Name, Description string
	// Schema is the JSON schema of the arguments, empty when the client gave none.
	Schema json.RawMessage
	// Strict holds the model to the schema. Nil means that the client did not say.
	Strict *bool
	Cache  json.RawMessage
	// Custom is not nil for a tool that takes a free text. It has no schema of its own.
	Custom *Custom
}

// ObjectSchema is Parameters with the type that some APIs want to be told: arguments are an object.
func (t *Tool) ObjectSchema() json.RawMessage {
	schema := t.Parameters()
	s := jsonscan.New(schema)
	if s.Peek() != '{' {
		return schema
	}
	members := 0
	for ok := s.Object(); ok; ok = s.More('}') {
		if string(s.Key()) == "type" {
			return schema
		}
		s.Skip()
		members++
	}
	switch {
	case s.Err() != nil:
		return schema
	case members == 0:
		return EmptySchema
	}
	return append([]byte(`{"type":"object",`), bytes.TrimLeft(schema, " \t\r\n")[1:]...)
}

// EmptySchema is the schema of a tool without arguments.
var EmptySchema = json.RawMessage(`{"type":"object","properties":{}}`)

// Parameters returns the tool's schema, never empty.
func (t *Tool) Parameters() json.RawMessage {
	switch {
	case t.Custom != nil:
		return customSchema
	case len(t.Schema) == 0:
		return EmptySchema
	}
	return t.Schema
}

// ChoiceMode says how free the model is to call tools.
type ChoiceMode uint8

// The modes. ChoiceDefault means that the client did not say.
const (
	ChoiceDefault ChoiceMode = iota
	ChoiceAuto
	ChoiceNone
	ChoiceAny // some tool; with Names one of these
)

// Choice is the client's word on the use of tools.
type Choice struct {
	Mode  ChoiceMode
	Names []string
}

// Offered returns the tools that the model may call, for upstreams that cannot be offered some and allowed fewer:
// all, unless the choice is among several or free within some.
func (r *Request) Offered() []Tool {
	c := &r.Choice
	if len(c.Names) == 0 || c.Mode == ChoiceAny && len(c.Names) == 1 || c.Mode == ChoiceNone {
		return r.Tools
	}
	return slices.DeleteFunc(slices.Clone(r.Tools), func(t Tool) bool { return !slices.Contains(c.Names, t.Name) })
}

// Word returns OpenAI's word for the mode, empty when the client did not say.
func (c *Choice) Word() string {
	switch c.Mode {
	case ChoiceAuto:
		return "auto"
	case ChoiceNone:
		return "none"
	case ChoiceAny:
		return "required"
	}
	return ""
}

// ReadWord reads what Word returns.
func (c *Choice) ReadWord(word string) {
	switch word {
	case "auto":
		c.Mode = ChoiceAuto
	case "none":
		c.Mode = ChoiceNone
	case "required", "any":
		c.Mode = ChoiceAny
	}
}

// OutputKind is the form of the answer's text.
type OutputKind uint8

// The kinds of output.
const (
	OutputText OutputKind = iota
	OutputJSON            // some JSON object
	OutputSchema
)

// Output says what form the answer's text is to have.
type Output struct {
	Kind              OutputKind
	Name, Description string
	Schema            json.RawMessage
	Strict            *bool
}

// Reasoning says how much the model is to think. The zero value leaves it to the model.
type Reasoning struct {
	// Effort is none, minimal, low, medium, high, xhigh, max or empty.
	Effort string
	// Budget is a number of tokens, nil when there is none.
	Budget *int64
	// Adaptive leaves the amount to a model that can choose.
	Adaptive bool
	// Show asks for the thoughts, or a summary of them. Nil means that the client did not say.
	Show *bool
}

// Asked reports whether the client wants the model to think.
func (r *Reasoning) Asked() bool {
	if r.Budget != nil {
		return *r.Budget != 0
	}
	return r.Adaptive || r.Effort != "" && r.Effort != "none"
}

// Off reports whether the client wants the model not to think.
func (r *Reasoning) Off() bool {
	return r.Effort == "none" || r.Budget != nil && *r.Budget == 0
}

// Tokens returns a budget of thinking tokens for the effort, where a model needs a number.
func (r *Reasoning) Tokens() int64 {
	if r.Budget != nil {
		return *r.Budget
	}
	switch r.Effort {
	case "minimal", "low":
		return 1024
	case "high":
		return 16384
	case "xhigh", "max":
		return 32000
	}
	return 4096
}

// Word returns the effort in a word, for a model that takes only words.
func (r *Reasoning) Word() string {
	switch {
	case r.Effort != "":
		return r.Effort
	case r.Budget == nil:
		return ""
	case *r.Budget == 0:
		return "none"
	case *r.Budget < 0: // the model's own choice
		return ""
	case *r.Budget <= 2048:
		return "low"
	case *r.Budget <= 8192:
		return "medium"
	}
	return "high"
}
