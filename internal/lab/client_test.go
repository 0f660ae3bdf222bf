package lab_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"omniroute/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a provider on a socket or in memory, with a client.
type harness struct {
	t      *testing.T
	p      *lab.Provider
	server *lab.Server
	base   string
	client *http.Client
	key    string
}

// onSocket starts the provider on loopback.
func onSocket(t *testing.T, o lab.Options) *harness {
	t.Helper()
	p := lab.New(o)
	s, err := lab.Listen(p)
	if err != nil {
		t.Fatal(err)
	}
	return newHarness(t, s, &http.Transport{DisableCompression: true})
}

// inMemory starts the provider on a pipe; inside a synctest bubble it runs on virtual time.
func inMemory(t *testing.T, o lab.Options) *harness {
	t.Helper()
	l := lab.Pipe()
	return newHarness(t, lab.Serve(l, lab.New(o)), l.Transport())
}

func newHarness(t *testing.T, s *lab.Server, tr *http.Transport) *harness {
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.Close()
	})
	return &harness{t: t, p: s.Provider(), server: s, base: s.BaseURL(), client: &http.Client{Transport: tr}, key: "k"}
}

// result is what a client saw.
type result struct {
	Status  int
	Header  http.Header
	Headers time.Duration // until the headers
	First   time.Duration // until the first content of a stream
	End     time.Duration
	Body    string
	Err     error // of reading the body, or of the round trip with Status 0

	// of streams
	Text     string
	Pieces   int
	Comments int
	Bad      int
	Finish   string
	Done     bool
	Error    string // the message of an error event
	Usage    bool
}

func (h *harness) ask(ctx context.Context, model string, stream bool, more ...string) result {
	h.t.Helper()
	body := `{"model":"` + model + `","stream":` + map[bool]string{true: "true", false: "false"}[stream] +
		`,"messages":[{"role":"user","content":"hello"}]` + strings.Join(more, "") + `}`
	return h.post(ctx, "/chat/completions", body)
}

func (h *harness) post(ctx context.Context, path, body string) result {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", h.base+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	start := time.Now()
	resp, err := h.client.Do(req)
	if err != nil {
		return result{Err: err, End: time.Since(start)}
	}
	defer resp.Body.Close()
	r := result{Status: resp.StatusCode, Header: resp.Header, Headers: time.Since(start)}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") || resp.Header.Get("Content-Encoding") != "" {
		b, err := io.ReadAll(resp.Body)
		r.Body, r.Err, r.End = string(b), err, time.Since(start)
		return r
	}
	r.read(resp.Body, start)
	return r
}

func (r *result) read(body io.Reader, start time.Time) {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			r.End = time.Since(start)
			if err != io.EOF {
				r.Err = err
			}
			return
		}
		r.Body += line
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, ":") {
			r.Comments++
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			r.Done = true
			continue
		}
		var e struct {
			Choices []struct {
				Text  string
				Delta struct {
					Content   string
					ToolCalls []struct {
						Function struct{ Arguments string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Usage *struct{} `json:"usage"`
			Error struct{ Message string }
		}
		if json.Unmarshal([]byte(data), &e) != nil {
			r.Bad++
			continue
		}
		r.Error += e.Error.Message
		r.Usage = r.Usage || e.Usage != nil
		for _, c := range e.Choices {
			content := c.Text + c.Delta.Content
			for _, t := range c.Delta.ToolCalls {
				content += t.Function.Arguments
			}
			if content != "" {
				if r.Pieces == 0 {
					r.First = time.Since(start)
				}
				r.Pieces++
				r.Text += content
			}
			r.Finish += c.Finish
		}
	}
}

// text returns the text of a plain answer.
func (r *result) text(t *testing.T) string {
	t.Helper()
	var c struct {
		Choices []struct {
			Text    string
			Message struct{ Content string }
		}
	}
	if err := json.Unmarshal([]byte(r.Body), &c); err != nil || len(c.Choices) != 1 {
		t.Fatalf("no plain answer: %v in %q", err, r.Body)
	}
	return c.Choices[0].Text + c.Choices[0].Message.Content
}

// errorCode returns the code of an error envelope.
func (r *result) errorCode() string {
	var e struct{ Error struct{ Code string } }
	json.NewDecoder(bytes.NewBufferString(r.Body)).Decode(&e)
	return e.Error.Code
}
