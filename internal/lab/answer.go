package lab

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
)

// answer is the content of a good answer: pieces of a text, or of a tool's arguments.
type answer struct {
	pieces []string
	tool   string // the called tool's name, or empty
	finish string
	prompt int // tokens
}

func (a *answer) text() string { return strings.Join(a.pieces, "") }

func (x *exchange) answer() answer {
	a := answer{finish: "stop", prompt: x.req.size()}
	if t := x.req.wantedTool(); t != nil && x.endpoint == chat {
		a.tool, a.finish = t.Function.Name, "tool_calls"
		a.pieces = chop(arguments(t.Function.Parameters), 8)
	} else {
		full := x.p.opt.Text(Prompt{
			Provider: x.p.opt.Name, Connection: x.connection, Model: x.model, Last: x.req.lastUser(), Call: x.turn,
		})
		full = x.said(full)
		a.pieces = strings.SplitAfter(full, " ")
		if full == "" {
			a.pieces = nil
		}
	}
	if n := x.req.limit(); n > 0 && n < len(a.pieces) {
		a.pieces, a.finish = a.pieces[:n], "length"
	}
	if x.plan.noContent {
		a.pieces, a.tool, a.finish = nil, "", "stop"
	}
	return a
}

func chop(s string, n int) []string {
	var out []string
	for len(s) > n {
		out, s = append(out, s[:n]), s[n:]
	}
	return append(out, s)
}

// moods are the demo's lines. %[1]s is the provider, %[2]s the connection, %[3]s the model.
var moods = []string{
	"%[1]s speaking, key %[2]s: %[3]s is wide awake and slightly proud of it.",
	"You have reached %[3]s at %[1]s by way of %[2]s. The kettle is on.",
	"%[3]s here, on %[1]s, holding %[2]s like a lantern.",
	"Greetings from %[1]s! %[2]s opened the door and %[3]s put the kettle down to answer.",
	"%[1]s, %[2]s, %[3]s: three names, one answer, no fuss.",
	"This is %[3]s. %[1]s pays the rent and %[2]s carries the key.",
	"All lights are green at %[1]s; %[2]s let you in and %[3]s wrote this line.",
	"%[3]s waves from %[1]s, where %[2]s has the morning shift.",
}

// lively is the default text: the same for the same question to the same target.
func lively(p Prompt) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s", p.Provider, p.Connection, p.Model, p.Last)
	connection := p.Connection
	if connection == "" {
		connection = "no key"
	}
	return fmt.Sprintf(moods[h.Sum64()%uint64(len(moods))], p.Provider, connection, p.Model)
}

// arguments makes up arguments that satisfy a tool's schema in its plain parts.
func arguments(schema json.RawMessage) string {
	b, err := json.Marshal(sample(schema, 0))
	if err != nil || string(b) == "null" {
		return "{}"
	}
	return string(b)
}

// sample returns a value for a JSON Schema. Nested deeper than 8 it gives up with null.
func sample(schema json.RawMessage, depth int) any {
	var s struct {
		Type       json.RawMessage
		Enum       []any
		Const      any
		Default    any
		Properties map[string]json.RawMessage
		Items      json.RawMessage
	}
	if depth > 8 || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	if s.Const != nil {
		return s.Const
	}
	if s.Default != nil {
		return s.Default
	}
	kind := text(s.Type)
	var kinds []string
	if json.Unmarshal(s.Type, &kinds) == nil && len(kinds) > 0 {
		kind = kinds[0]
	}
	switch kind {
	case "string":
		return "lab"
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		if v := sample(s.Items, depth+1); v != nil {
			return []any{v}
		}
		return []any{}
	}
	if kind != "object" && s.Properties == nil {
		return nil
	}
	object := make(map[string]any, len(s.Properties))
	for name, sub := range s.Properties {
		object[name] = sample(sub, depth+1)
	}
	return object
}

// embed answers with vectors that depend on the input's text alone.
func (x *exchange) embed() {
	size := x.req.Dimensions
	if size <= 0 || size > 1024 {
		size = 8
	}
	var inputs []json.RawMessage
	if json.Unmarshal(x.req.Input, &inputs) != nil || len(inputs) > 0 && isNumber(inputs[0]) {
		inputs = []json.RawMessage{x.req.Input}
	}
	if len(inputs) > 2048 {
		x.refuse(errInvalid("input", "The input has more than 2048 entries."))
		return
	}
	type vector struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float64 `json:"embedding"`
	}
	data := make([]vector, len(inputs))
	for i, in := range inputs {
		h := fnv.New64a()
		h.Write(slices.Clone(in))
		rnd := rand.New(rand.NewPCG(h.Sum64(), 0))
		v := make([]float64, size)
		for j := range v {
			v[j] = rnd.Float64()*2 - 1
		}
		data[i] = vector{"embedding", i, v}
	}
	x.sendJSON(marshal(map[string]any{
		"object": "list", "data": data, "model": x.model,
		"usage": map[string]int{"prompt_tokens": x.req.size(), "total_tokens": x.req.size()},
	}), x.latency(0))
}

func isNumber(raw json.RawMessage) bool {
	var n json.Number
	return json.Unmarshal(raw, &n) == nil && n != ""
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types always marshal
	}
	return b
}
