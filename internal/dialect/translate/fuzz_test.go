package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// seeds adds what the transcripts hold of a kind.
func seeds(f *testing.F, kind string) {
	f.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(raw).Files {
			if words := strings.Split(file.Name, "."); len(words) == 4 && words[3] == kind {
				f.Add(file.Data)
			}
		}
	}
}

// FuzzRequests: a request is refused with a reason, or becomes JSON for each upstream.
func FuzzRequests(f *testing.F) {
	seeds(f, "request")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, from := range codecs {
			for _, path := range []string{"/v1/chat/completions", "/v1beta/models/m:generateContent", "/v1/messages/count_tokens", "/v1/embeddings"} {
				asked, err := from.ReadRequest(path, body)
				if err != nil {
					continue
				}
				for _, to := range codecs {
					if from == to {
						continue
					}
					tr, err := New(from, to, asked, Options{Model: "m-1", Now: time.Unix(0, 0), ID: "r"})
					if err != nil {
						unsupported, ok := errors.AsType[*neutral.UnsupportedError](err)
						fault, ok2 := errors.AsType[*dialect.RequestError](err)
						if !(ok && unsupported.Field != "" && unsupported.Reason != "") && !(ok2 && fault.Message != "") {
							t.Fatalf("%s to %s: %v", from.Name(), to.Name(), err)
						}
						continue
					}
					if !json.Valid(tr.Body()) || !strings.HasPrefix(tr.Path(), "/") {
						t.Fatalf("%s to %s: %s %s", from.Name(), to.Name(), tr.Path(), tr.Body())
					}
				}
			}
		}
	})
}

// FuzzStreams: whatever an upstream sends, the client's stream is made of whole events that its
// dialect can read, and is not whole where the upstream's was not.
func FuzzStreams(f *testing.F) {
	seeds(f, "stream")
	asked := &dialect.Request{Path: "/v1/chat/completions", Stream: true, IncludeUsage: true,
		Body: []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"q"}],"input":"q","max_tokens":5,"contents":[{"parts":[{"text":"q"}]}]}`)}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, from := range codecs {
			for _, to := range codecs {
				if from == to {
					continue
				}
				tr, err := New(from, to, asked, Options{Model: "m-1", Now: time.Unix(0, 0), ID: "r"})
				if err != nil {
					t.Fatal(err)
				}
				out := pump(from, to, tr, data)
				r := sse.NewReader(bytes.NewReader(out))
				for ev, err := r.Next(); err == nil; ev, err = r.Next() {
					if ev.Unterminated || !json.Valid(ev.Data) && string(ev.Data) != "[DONE]" {
						t.Fatalf("%s from %s: %q", from.Name(), to.Name(), ev.Raw)
					}
				}
				if a, up := judged(from, out), judged(to, data); a.Complete != up.Complete || a.Error == up.Complete || a.Dropped > 0 {
					t.Fatalf("%s from %s: %+v of %+v\n%s", from.Name(), to.Name(), a, up, out)
				}
			}
		}
	})
}

// FuzzAnswers: a body that an upstream's dialect takes for an answer becomes JSON that the
// client's dialect takes for one.
func FuzzAnswers(f *testing.F) {
	seeds(f, "answer")
	asked := &dialect.Request{Path: "/v1/chat/completions",
		Body: []byte(`{"model":"m","messages":[{"role":"user","content":"q"}],"input":"q","max_tokens":5,"contents":[{"parts":[{"text":"q"}]}]}`)}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, from := range codecs {
			for _, to := range codecs {
				if from == to {
					continue
				}
				if a := to.Inspect(asked, body); !a.Complete || !a.Content {
					continue
				}
				tr, err := New(from, to, asked, Options{Model: "m-1", Now: time.Unix(0, 0), ID: "r"})
				if err != nil {
					t.Fatal(err)
				}
				out, err := tr.Answer(body)
				if err != nil {
					continue
				}
				if a := from.Inspect(asked, out); !json.Valid(out) || a.Malformed || a.Error {
					t.Fatalf("%s from %s: %+v\n%s\n%s", from.Name(), to.Name(), a, body, out)
				}
			}
		}
	})
}

// FuzzWithoutForeign: what passes through stays JSON, and stays as it is without foreign thoughts.
func FuzzWithoutForeign(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"b21uaTE6Z2VtaW5pOmMybG4="},{"type":"text","text":"b21uaTE6"}]}],"thinking":{"type":"enabled"}}`))
	f.Add([]byte(`{"contents":[{"parts":[{"thoughtSignature":"b21uaTE6x","functionCall":{}}]}],"input":[{"encrypted_content":"b21uaTE6x"},1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range codecs {
			out := WithoutForeign(d, body)
			if json.Valid(body) != json.Valid(out) {
				t.Fatalf("%s became %s", body, out)
			}
			if !Foreign(body) && !bytes.Equal(body, out) {
				t.Fatalf("%s became %s", body, out)
			}
		}
	})
}
