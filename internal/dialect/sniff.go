package dialect

import (
	"bytes"
	"mime"
	"strings"
)

// Format is the framing of an answer's body.
type Format uint8

// The formats.
const (
	FormatUnknown Format = iota
	FormatSSE
	FormatJSON
	FormatHTML
)

// Sniff tells the format of an answer by its content type and first bytes. The bytes win
// where they are clear, since upstreams send events as application/json and the reverse.
// With too few bytes the content type decides.
func Sniff(contentType string, head []byte) Format {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	head = bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(head) == 0:
	case head[0] == '{' || head[0] == '[':
		return FormatJSON
	case head[0] == '<':
		return FormatHTML
	case head[0] == ':':
		return FormatSSE
	default:
		for _, field := range []string{"data:", "event:", "id:", "retry:"} {
			if bytes.HasPrefix(head, []byte(field)) {
				return FormatSSE
			}
		}
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType, _, _ = strings.Cut(contentType, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	}
	switch {
	case mediaType == "text/event-stream":
		return FormatSSE
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		return FormatJSON
	case mediaType == "text/html" || mediaType == "application/xhtml+xml":
		return FormatHTML
	}
	return FormatUnknown
}
