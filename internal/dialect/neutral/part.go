package neutral

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// PartKind says what a part is.
type PartKind uint8

// The kinds of parts.
const (
	PartText PartKind = iota
	PartImage
	PartFile // a document
	PartAudio
	PartCall      // the model calls a tool
	PartResult    // what a tool gave back
	PartReasoning // thoughts, possibly sealed
	PartRefusal
)

// Part is a piece of a turn or of an answer. Which members count depends on its kind.
type Part struct {
	Kind PartKind
	// Text of a text, a thought or a refusal.
	Text  string
	Media Media
	Call  Call
	// Result of a tool.
	Result Result
	// Seal goes with reasoning. When it stands without text before a call, it belongs to that call.
	Seal Seal
	// Cache is a hint where a prompt's reusable beginning ends, in Anthropic's words.
	Cache json.RawMessage
}

// Media is an image, a document or a sound: base64 data with its type, or a place where it is.
type Media struct {
	Type string // like image/png
	Data string // base64
	URL  string
	// Text is the content of a document that is plain text.
	Text   string
	Name   string // a file name or title
	Detail string // how closely to look at an image: low, high, auto or empty
}

// DataURL returns the media as a data URL.
func (m *Media) DataURL() string { return "data:" + m.Type + ";base64," + m.Data }

// Shown is the media as a text, for answers in APIs that have no place for media: in Markdown, which
// clients show as what it is.
func (m *Media) Shown() string {
	at := m.URL
	if at == "" {
		at = m.DataURL()
	}
	if m.Type == "" || strings.HasPrefix(m.Type, "image/") {
		return "![image](" + at + ")"
	}
	return "[" + m.Type + "](" + at + ")"
}

// ReadURL takes an image's or document's address, which may hold the data itself.
func (m *Media) ReadURL(url string) {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		if head, data, ok := strings.Cut(rest, ","); ok {
			if kind, ok := strings.CutSuffix(head, ";base64"); ok {
				m.Type, _, _ = strings.Cut(kind, ";")
				m.Data = data
				return
			}
		}
	}
	m.URL = url
}

// Unpack makes a document of plain text in base64 that text, which every dialect has a place for.
func (m *Media) Unpack() {
	kind, _, _ := strings.Cut(m.Type, ";")
	if m.Data == "" || !strings.HasPrefix(kind, "text/") && kind != "application/json" {
		return
	}
	if text, err := base64.StdEncoding.DecodeString(m.Data); err == nil && utf8.Valid(text) && len(text) > 0 {
		m.Type, m.Text, m.Data = "text/plain", string(text), ""
	}
}

// Call is a model's call of a tool.
type Call struct {
	ID, Name string
	// Arguments is JSON as the model wrote it; it may be broken, and empty stands for {}.
	Arguments string
	// Custom: a call of a custom tool, whose text FreeArguments has made arguments.
	Custom bool
}

// Object returns the arguments as a JSON object. Arguments that are not one are put in as a
// string, since some dialects have no other place for them.
func (c *Call) Object() json.RawMessage {
	return Object(c.Arguments, "arguments")
}

// Object returns a text that is a JSON object as it is, one that is such a text once more as a JSON
// string, as some models write it, without that string, an empty text as {}, and any other text as the
// one member of an object.
func Object(text, member string) json.RawMessage {
	trimmed := strings.Trim(text, " \t\r\n")
	switch {
	case trimmed == "":
		return json.RawMessage("{}")
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		return json.RawMessage(trimmed)
	case trimmed[0] == '"':
		var inner string
		if json.Unmarshal([]byte(trimmed), &inner) == nil {
			if inner = strings.Trim(inner, " \t\r\n"); strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) {
				return json.RawMessage(inner)
			}
		}
	}
	return Encode(map[string]string{member: text})
}

// Result is what a tool gave back for a call.
type Result struct {
	// ID is the call's, Name its tool's where known.
	ID, Name string
	Parts    []Part
	Error    bool
}

// Text joins the texts among parts.
func Text(parts []Part, between string) string {
	var b strings.Builder
	for i := range parts {
		t := parts[i].Text
		switch parts[i].Kind {
		case PartText, PartRefusal:
		case PartFile:
			t = parts[i].Media.Text
		default:
			continue
		}
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(between)
		}
		b.WriteString(t)
	}
	return b.String()
}

// ResultText returns a result as one text. A failure is told by its beginning, which models
// understand where the dialect has no flag.
func (r *Result) ResultText() string {
	t := Text(r.Parts, "\n")
	if r.Error && !strings.HasPrefix(strings.ToLower(t), "error") {
		return "Error: " + t
	}
	return t
}

// Texts makes a list of one text part, and of none when the text is empty.
func Texts(text string) []Part {
	if text == "" {
		return nil
	}
	return []Part{{Kind: PartText, Text: text}}
}
