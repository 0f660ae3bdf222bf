package classify

import (
	"net/http"
	"strings"
	"testing"
)

// TestGarbageIsNoTimeout tells a stream of rubbish from one that kept waiting and from one that was
// cut.
func TestGarbageIsNoTimeout(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	chunk := `data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n"
	for _, tt := range []struct {
		name, body, rule string
		phases           []Phase
	}{
		{"words", "hello world", "stream.garbled", both},
		{"one letter", strings.Repeat("x", 3000), "stream.garbled", both},
		{"lines of words", "hello\n\nworld\n\n", "stream.garbled", both},
		{"words as data", "data: hello world\n\n", "stream.garbled", both},
		{"words as data, then the end", "data: hello world\n\ndata: [DONE]\n\n", "stream.garbled", both},
		{"numbers as data", "data: 1\n\ndata: 2\n\n", "stream.garbled", both},
		{"words after comments", ": waiting\n\nhello\n", "stream.garbled", both},
		{"comments", ": waiting\n\n: waiting\n\n", "answer.keepalive_only", both},
		{"comments and other fields", "retry: 100\nid: 1\n: waiting\n\n", "answer.keepalive_only", both},
		{"blank lines", "\n\n\n", "answer.keepalive_only", both},
		{"a field that broke off", ": waiting\n\ndat", "answer.keepalive_only", both},
		{"a chunk that broke off", `data: {"choices":[{"del`, "stream.cut", []Phase{PhaseFirstEvent}},
		{"words before an answer", "data: hello\n\n" + chunk, "stream.cut", both},
		{"words after content", "data: hello\n\n", "stream.cut", []Phase{PhaseMidStream}},
		{"an error in words", "event: error\ndata: something broke\n\n", "default.plain_success", both},
	} {
		for _, phase := range tt.phases {
			v := cl.Classify(Input{Status: 200, Phase: phase, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: []byte(tt.body), Now: exampleNow})
			if v.Rule != tt.rule {
				t.Errorf("%s, %v: %v by %s, want %s", tt.name, phase, v, v.Rule, tt.rule)
			}
		}
	}
}

var both = []Phase{PhaseBody, PhaseFirstEvent}
