// Package anthropic is the dialect of Anthropic's Messages API, its count of tokens included,
// and of the services that speak like it.
package anthropic

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// Dialect implements neutral.Codec. The zero value is ready.
type Dialect struct{}

var (
	_ neutral.Codec      = Dialect{}
	_ dialect.Terminator = Dialect{}
)

const name = "anthropic"

// Name returns "anthropic".
func (Dialect) Name() string { return name }

// ReadRequest reads a JSON request to any path; only the last part of the path tells what it
// asks for.
func (Dialect) ReadRequest(path string, body []byte) (*dialect.Request, error) {
	return dialect.ReadJSON(operation(path), path, body)
}

func operation(path string) dialect.Operation {
	path = strings.TrimRight(path, "/")
	switch {
	case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/complete"):
		return dialect.OpGenerate
	case strings.HasSuffix(path, "/count_tokens"):
		return dialect.OpCount
	}
	return dialect.OpOther
}

// ToolNames returns what names of tools may look like.
func (Dialect) ToolNames() neutral.NameRule { return neutral.NameRule{Max: 128} }

// Terminator returns what ends a stream, for upstreams that leave it out after a stop reason.
func (Dialect) Terminator() []byte {
	return []byte("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
}
