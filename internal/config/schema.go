package config

import (
	"encoding/json"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"omniroute/internal/catalog"
)

// draft is the dialect of JSON Schema that most editors understand.
const draft = "http://json-schema.org/draft-07/schema#"

// patterns of values that are strings in the file. A variable may stand for any of them.
const (
	variablePattern = `\$\{`
	durationPattern = `^[+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	sizePattern     = `^([0-9]+(\.[0-9]+)?) ?(B|[KMG]iB|[kKMG]B)?$`
	sharePattern    = `^[0-9]*\.?[0-9]+%?$`
	statusPattern   = `^([1-5][xX][xX]|[1-5][0-9][0-9](-[1-5][0-9][0-9])?)$`
	namePattern     = `^[A-Za-z0-9._-]{1,64}$`
)

// Schema returns the JSON Schema (draft 7) of a configuration, with descriptions and defaults.
func Schema() *jsonschema.Schema {
	s := root.schema()
	s.Schema = draft
	s.Title = "OmniRoute configuration"
	providers := s.Properties["providers"]
	providers.PropertyNames = &jsonschema.Schema{Pattern: namePattern}
	// Known names are offered by editors; what may stand below them is the same as for any other.
	s.Definitions = map[string]*jsonschema.Schema{"provider": providers.AdditionalProperties}
	providers.AdditionalProperties = &jsonschema.Schema{Ref: "#/definitions/provider"}
	providers.Properties = map[string]*jsonschema.Schema{}
	for _, p := range catalog.All() {
		providers.Properties[p.ID] = &jsonschema.Schema{
			Description: p.Title,
			AllOf:       []*jsonschema.Schema{{Ref: "#/definitions/provider"}},
		}
		providers.PropertyOrder = append(providers.PropertyOrder, p.ID)
	}
	return s
}

// SchemaJSON returns Schema as an indented document that ends in a line break.
func SchemaJSON() ([]byte, error) {
	b, err := json.MarshalIndent(Schema(), "", "  ")
	return append(b, '\n'), err
}

// schema makes the schema of one place.
func (s *spec) schema() *jsonschema.Schema {
	forms := []*jsonschema.Schema{s.form()}
	if s.alternative != nil {
		forms = append(forms, s.alternative.schema())
	}
	return anyOf(forms...)
}

func (s *spec) form() *jsonschema.Schema {
	text := func(pattern string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Pattern: pattern} }
	variable := text(variablePattern)
	switch s.kind {
	case kindSecret:
		return &jsonschema.Schema{Type: "string", MinLength: pointer(1)}
	case kindEnum:
		return anyOf(words(s.enum), variable)
	case kindInt:
		return anyOf(append(s.besides(), s.bounds("integer"), variable)...)
	case kindNumber:
		return anyOf(s.bounds("number"), variable)
	case kindBool:
		return anyOf(&jsonschema.Schema{Type: "boolean"}, variable)
	case kindDuration:
		duration := text(durationPattern)
		forms := append(s.besides(), duration, variable)
		if s.min > 0 {
			duration.Not = text(`^[^1-9]*$`) // 0s, 0m0s
		} else {
			zero := any(0)
			forms = append(forms, &jsonschema.Schema{Const: &zero})
		}
		return anyOf(forms...)
	case kindSize:
		size := text(sizePattern)
		size.Not = text(`^[^1-9]*$`)
		return anyOf(size, &jsonschema.Schema{Type: "integer", Minimum: pointer(1.0)}, variable)
	case kindShare:
		number, percent := &jsonschema.Schema{Type: "number", Minimum: pointer(0.0), Maximum: pointer(1.0)}, text(sharePattern)
		if s.min > 0 {
			number.Minimum, number.ExclusiveMinimum = nil, pointer(0.0)
			percent.Not = text(`^[^1-9]*$`) // 0%
		}
		return anyOf(number, percent, variable)
	case kindStatus:
		return anyOf(&jsonschema.Schema{Type: "integer", Minimum: pointer(100.0), Maximum: pointer(599.0)}, text(statusPattern), variable)
	case kindList:
		list := &jsonschema.Schema{Type: "array"}
		if s.nonEmpty {
			list.MinItems = pointer(1)
		}
		list.Items = s.elem.schema()
		return list
	case kindMap:
		return s.mapSchema()
	case kindObject:
		return s.objectSchema()
	}
	return &jsonschema.Schema{Type: "string"}
}

func (s *spec) mapSchema() *jsonschema.Schema {
	m := &jsonschema.Schema{Types: []string{"object", "null"}}
	if s.nonEmpty {
		m.Types, m.Type, m.MinProperties = nil, "object", pointer(1)
	}
	elem := s.elem.schema()
	if len(s.enum) == 0 {
		m.AdditionalProperties = elem
		return m
	}
	m.Properties = map[string]*jsonschema.Schema{}
	for _, key := range s.enum {
		m.Properties[key] = elem.CloneSchemas()
	}
	m.PropertyOrder, m.AdditionalProperties = s.enum, never()
	return m
}

func (s *spec) objectSchema() *jsonschema.Schema {
	o := &jsonschema.Schema{Types: []string{"object", "null"}, Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: never()}
	for _, f := range s.fields {
		below := f.schema()
		below.Description = f.doc
		below.Default = f.defaultJSON()
		o.Properties[f.key] = below
		o.PropertyOrder = append(o.PropertyOrder, f.key)
		if f.required {
			o.Required = append(o.Required, f.key)
		}
	}
	if len(o.Required) > 0 {
		o.Types, o.Type = nil, "object"
	}
	return o
}

func (f *field) defaultJSON() json.RawMessage {
	if f.def == "" {
		return nil
	}
	var v any
	if err := yaml.Unmarshal([]byte(f.def), &v); err != nil {
		v = f.def
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// besides is the schema of the words that may stand beside a number.
func (s *spec) besides() []*jsonschema.Schema {
	if len(s.enum) == 0 {
		return nil
	}
	return []*jsonschema.Schema{words(s.enum)}
}

func (s *spec) bounds(kind string) *jsonschema.Schema {
	b := &jsonschema.Schema{Type: kind, Minimum: pointer(s.min)}
	if s.max > 0 {
		b.Maximum = pointer(s.max)
	}
	return b
}

func words(list []string) *jsonschema.Schema {
	e := &jsonschema.Schema{}
	for _, w := range list {
		e.Enum = append(e.Enum, w)
	}
	return e
}

func anyOf(forms ...*jsonschema.Schema) *jsonschema.Schema {
	if len(forms) == 1 {
		return forms[0]
	}
	return &jsonschema.Schema{AnyOf: forms}
}

// never is the schema that nothing fits.
func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func pointer[T any](v T) *T { return &v }
