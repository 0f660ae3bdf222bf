package translate

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/dialecttest"
)

// TestTranscripts translates what is in testdata. A file's name says what it is:
// NAME.FROM.TO.request is a client's body in FROM for an upstream of TO, .answer and .stream are what
// such an upstream answers. Each is followed by NAME.want with what comes of it.
// NAME.asked is what the answers and streams behind it were asked by, in every dialect.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	question := map[*testing.T][]byte{} // by archive
	var mu sync.Mutex
	dialecttest.Archives(t, func(t *testing.T, given txtar.File) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(given.Name, ".asked") {
			question[t] = given.Data
			return "", false
		}
		asked := question[t]
		if asked == nil {
			asked = []byte(`{"model":"m-1","messages":[{"role":"user","content":"q"}],"input":"q","max_tokens":5,"contents":[{"parts":[{"text":"q"}]}]}`)
		}
		return transcript(t, asked, given), true
	})
}

func transcript(t *testing.T, question []byte, given txtar.File) string {
	t.Helper()
	words := strings.Split(given.Name, ".")
	if len(words) != 4 {
		t.Fatalf("%s: want NAME.FROM.TO.KIND", given.Name)
	}
	from, to, kind := Dialect(words[1]), Dialect(words[2]), words[3]
	body := question
	if kind == "request" {
		body = given.Data
	}
	model := "m-1"
	var named struct{ Model string }
	if json.Unmarshal(body, &named) == nil && strings.Contains(named.Model, "-") {
		model = named.Model
	}
	asked := &dialect.Request{Body: []byte(`{"model":"m"}`), Stream: kind == "stream", IncludeUsage: true}
	if kind == "request" {
		path := map[string]string{"openai": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/v1/messages",
			"gemini": "/v1beta/models/m:generateContent"}[from.Name()]
		if strings.HasPrefix(words[0], "count-") {
			path = map[string]string{"responses": "/v1/responses/input_tokens", "anthropic": "/v1/messages/count_tokens", "gemini": "/v1beta/models/m:countTokens"}[from.Name()]
		}
		if strings.HasPrefix(words[0], "embed-") {
			path = map[string]string{"openai": "/v1/embeddings", "gemini": "/v1beta/models/m:batchEmbedContents"}[from.Name()]
		}
		var err error
		if asked, err = from.ReadRequest(path, body); err != nil {
			return "refused: " + err.Error() + "\n"
		}
	} else {
		asked.Path = "/v1/chat/completions"
		asked.Body = question
	}
	tr, err := New(from, to, asked, Options{Model: model, Now: time.Unix(1700000000, 0), ID: "req.1"})
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	switch kind {
	case "request":
		var out bytes.Buffer
		out.WriteString(tr.Path() + "\n")
		for _, h := range tr.Header() {
			out.WriteString(h[0] + ": " + h[1] + "\n")
		}
		if err := json.Indent(&out, tr.Body(), "", " "); err != nil {
			t.Fatal(err)
		}
		return out.String() + "\n"
	case "answer":
		out, err := tr.Answer(given.Data)
		if err != nil {
			return "unusable: " + err.Error() + "\n"
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, out, "", " "); err != nil {
			t.Fatal(err)
		}
		return pretty.String() + "\n"
	}
	return string(pump(from, to, tr, given.Data))
}
