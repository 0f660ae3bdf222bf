package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/lab"

	"github.com/google/go-cmp/cmp"
)

func TestGoodAnswers(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Name: "acme", Keys: map[string]string{"k": "main"}, Models: []string{"m1"}})

	plain := h.ask(t.Context(), "m1", false)
	said := plain.text(t)
	for _, word := range []string{"acme", "main", "m1"} {
		if !strings.Contains(said, word) {
			t.Errorf("%q does not name %s", said, word)
		}
	}
	if again := h.ask(t.Context(), "m1", false); again.text(t) != said {
		t.Errorf("the same question was answered by %q and %q", said, again.text(t))
	}
	stream := h.ask(t.Context(), "m1", true)
	whole(t, stream)
	if stream.Text != said {
		t.Errorf("streamed %q, plain %q", stream.Text, said)
	}
	if stream.Usage {
		t.Error("usage came unasked")
	}
	if r := h.ask(t.Context(), "m1", true, `,"stream_options":{"include_usage":true}`); !r.Usage || !r.Done {
		t.Errorf("no usage: %+v", r)
	}
	if r := h.ask(t.Context(), "m1", false, `,"max_tokens":1`); !strings.Contains(r.Body, `"finish_reason":"length"`) {
		t.Errorf("not cut at max_tokens: %s", r.Body)
	}
	if r := h.post(t.Context(), "/completions", `{"model":"m1","prompt":["hello"]}`); r.text(t) == "" {
		t.Errorf("no completion: %s", r.Body)
	}
	if r := h.post(t.Context(), "/completions", `{"model":"m1","prompt":"hello","stream":true}`); r.Text == "" || r.Finish != "stop" || !r.Done {
		t.Errorf("no streamed completion: %+v", r)
	}
}

func TestAnswerIsContinued(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Text: sentence})
	r := h.post(t.Context(), "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"count"},{"role":"assistant","content":"one two three "}]}`)
	if got := r.text(t); got != "four five six seven eight nine ten eleven" {
		t.Errorf("continued with %q", got)
	}
}

func TestToolCalls(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{})
	tools := `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{
		"city":{"type":"string"},"days":{"type":["integer","null"]},"unit":{"enum":["C","F"]},"tags":{"type":"array","items":{"type":"string"}}}}}},
		{"type":"function","function":{"name":"clock"}}]`
	const want = `{"city":"lab","days":1,"tags":["lab"],"unit":"C"}`

	type completion struct {
		Choices []struct {
			Finish  string `json:"finish_reason"`
			Message struct {
				ToolCalls []struct {
					ID, Type string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	var c completion
	r := h.ask(t.Context(), "m", false, tools)
	if err := json.Unmarshal([]byte(r.Body), &c); err != nil || len(c.Choices) != 1 || len(c.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("no tool call (%v): %s", err, r.Body)
	}
	if call := c.Choices[0].Message.ToolCalls[0]; call.Function.Name != "weather" || call.Function.Arguments != want || call.Type != "function" || c.Choices[0].Finish != "tool_calls" {
		t.Errorf("got %+v", c)
	}
	if r := h.ask(t.Context(), "m", true, tools); r.Text != want || r.Finish != "tool_calls" || !r.Done {
		t.Errorf("streamed %+v", r)
	}
	if r := h.ask(t.Context(), "m", false, tools, `,"tool_choice":{"type":"function","function":{"name":"clock"}}`); !strings.Contains(r.Body, `"name":"clock","arguments":"{}"`) {
		t.Errorf("the chosen tool was not called: %s", r.Body)
	}
	if r := h.ask(t.Context(), "m", false, tools, `,"tool_choice":"none"`); r.text(t) == "" {
		t.Errorf("no text: %s", r.Body)
	}
	after := h.post(t.Context(), "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"tool","content":"rain"}]`+tools+`}`)
	if after.text(t) == "" {
		t.Errorf("no text after the tool's result: %s", after.Body)
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{})
	for input, want := range map[string]int{`"a"`: 1, `["a","b"]`: 2, `[1,2,3]`: 1, `[[1],[2]]`: 2} {
		r := h.post(t.Context(), "/embeddings", `{"model":"e","dimensions":3,"input":`+input+`}`)
		var got struct {
			Data []struct{ Embedding []float64 }
		}
		if err := json.Unmarshal([]byte(r.Body), &got); err != nil || len(got.Data) != want || len(got.Data[0].Embedding) != 3 {
			t.Errorf("%s: %v in %s", input, err, r.Body)
		}
	}
	if r := h.post(t.Context(), "/embeddings", `{"model":"e","input":[`+strings.Repeat(`"a",`, 2048)+`"a"]}`); r.Status != 400 {
		t.Errorf("too many inputs got %d", r.Status)
	}
	if r := h.post(t.Context(), "/embeddings", `{"model":"fault/503","input":"a"}`); r.Status != 503 {
		t.Errorf("got %d", r.Status)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Models: []string{"m1"}})
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := h.client.Get(h.base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var all struct {
			ID   string
			Data []struct{ ID, Description string }
		}
		if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
			t.Fatal(err)
		}
		ids := all.ID
		for _, m := range all.Data {
			ids += m.ID + " "
		}
		return resp.StatusCode, ids
	}
	if code, ids := get("/models"); code != 200 || !strings.HasPrefix(ids, "m1 fault/429 ") {
		t.Errorf("got %d %s", code, ids)
	}
	if code, id := get("/models/m1"); code != 200 || id != "m1" {
		t.Errorf("got %d %s", code, id)
	}
	if code, id := get("/models/fault/cut"); code != 200 || id != "fault/cut" {
		t.Errorf("got %d %s", code, id)
	}
	if code, _ := get("/models/m2"); code != 404 {
		t.Errorf("got %d", code)
	}
	if n := h.p.Total(); n != 0 {
		t.Errorf("%d calls counted for the list of models", n)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Keys: map[string]string{"k": "main"}, Models: []string{"m1"}})
	for _, c := range []struct {
		name, key, path, body string
		status                int
		code                  string
	}{
		{"unknown key", "x", "/chat/completions", `{"model":"m1","messages":[{"role":"user","content":"a"}]}`, 401, "invalid_api_key"},
		{"unknown model", "k", "/chat/completions", `{"model":"m2","messages":[{"role":"user","content":"a"}]}`, 404, "model_not_found"},
		{"unknown fault", "k", "/chat/completions", `{"model":"fault/430","messages":[{"role":"user","content":"a"}]}`, 404, "model_not_found"},
		{"no JSON", "k", "/chat/completions", `model=m1`, 400, ""},
		{"no model", "k", "/chat/completions", `{"messages":[{"role":"user","content":"a"}]}`, 400, ""},
		{"no messages", "k", "/chat/completions", `{"model":"m1"}`, 400, ""},
		{"no prompt", "k", "/completions", `{"model":"m1"}`, 400, ""},
		{"no input", "k", "/embeddings", `{"model":"m1"}`, 400, ""},
		{"no model anywhere", "k", "/audio/speech", `{"input":"a"}`, 400, ""},
	} {
		h.key = c.key
		if r := h.post(t.Context(), c.path, c.body); r.Status != c.status || r.errorCode() != c.code {
			t.Errorf("%s: got %d %q, want %d %q", c.name, r.Status, r.errorCode(), c.status, c.code)
		}
	}
	resp, err := h.client.Get(h.base + "/nothing")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("GET /nothing: got %d", resp.StatusCode)
	}
	resp, err = h.client.Get(h.base + "/chat/completions")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
		t.Errorf("GET: got %d", resp.StatusCode)
	}
}

func TestKeysAreFoundInEveryHeader(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Keys: map[string]string{"secret": "main"}})
	for name, value := range map[string]string{
		"Authorization": "bearer secret", "X-Api-Key": "secret", "Api-Key": "secret", "X-Goog-Api-Key": "secret",
	} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", h.base+"/models", nil)
		req.Header.Set(name, value)
		resp, err := h.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || h.p.LastRequest().Connection != "main" {
			t.Errorf("%s: got %d", name, resp.StatusCode)
		}
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := func(seed uint64) (waits []time.Duration) {
			h := inMemory(t, lab.Options{Seed: seed, Text: sentence, Latency: lab.Latency{
				FirstContent: lab.Delay{Median: time.Second, Sigma: 0.5, Max: 4 * time.Second},
				Gap:          lab.Delay{Median: 100 * time.Millisecond},
			}})
			for range 40 {
				r := h.ask(t.Context(), "m", true)
				if r.Headers != 0 || r.End-r.First != time.Second {
					t.Fatalf("headers %v, first %v, end %v", r.Headers, r.First, r.End)
				}
				waits = append(waits, r.First)
			}
			plain := h.ask(t.Context(), "m", false)
			if plain.End < time.Second || plain.Headers != plain.End {
				t.Errorf("plain answer: headers %v, end %v", plain.Headers, plain.End)
			}
			return waits
		}
		a, b, c := run(1), run(1), run(2)
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("the same seed gave other waits:\n%s", d)
		}
		if cmp.Equal(a, c) {
			t.Error("another seed gave the same waits")
		}
		below := 0
		for _, w := range a {
			if w < time.Second {
				below++
			}
			if w > 4*time.Second {
				t.Errorf("%v is above the bound", w)
			}
		}
		if below < 8 || below > 32 {
			t.Errorf("%d of 40 waits are below the median", below)
		}
	})
}

func TestRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, lab.Options{KeepCalls: 3, KeepRequests: 2, Script: []lab.Phase{{Match: lab.OnModel("hung"), Fault: lab.Hang()}}})
		for range 10 {
			h.ask(t.Context(), "m", false, `,"extra":{"kept":1}`)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		done := make(chan struct{})
		go func() {
			h.ask(ctx, "hung", true)
			close(done)
		}()
		if err := h.p.Await(t.Context(), 11, 1); err != nil {
			t.Fatal(err)
		}
		if n := h.p.InFlight(); n != 1 {
			t.Errorf("%d in flight", n)
		}
		<-done
		if err := h.p.Await(t.Context(), 11, 0); err != nil {
			t.Fatal(err)
		}
		want := []lab.Count{{"k", "hung", "hang", 1}, {"k", "m", "ok", 10}}
		if d := cmp.Diff(want, h.p.Counts()); d != "" {
			t.Errorf("counts (-want +got):\n%s", d)
		}
		if h.p.Count("k", "") != 11 || h.p.Count("", "m") != 10 || h.p.Count("other", "") != 0 {
			t.Error("Count disagrees with Counts")
		}
		calls := h.p.Calls()
		if len(calls) != 3 {
			t.Fatalf("%d calls kept", len(calls))
		}
		last := calls[2]
		wantCall := lab.Call{
			At: start, End: start.Add(5 * time.Second), Path: "/v1/chat/completions", Connection: "k", Model: "hung",
			Stream: true, Reused: true, Outcome: "hang", Turn: 1, Canceled: true,
		}
		if d := cmp.Diff(wantCall, last); d != "" {
			t.Errorf("last call (-want +got):\n%s", d)
		}
		reqs := h.p.Requests()
		if len(reqs) != 2 || !strings.Contains(string(reqs[0].Body), `"extra":{"kept":1}`) || reqs[0].Header.Get("Authorization") != "Bearer k" {
			t.Errorf("requests %+v", reqs)
		}
		h.p.Forget()
		if h.p.Total() != 0 || len(h.p.Calls()) != 0 || h.p.LastRequest().Method != "" {
			t.Error("not forgotten")
		}
	})
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Name: "acme"})
	r := h.post(t.Context(), "/images/generations", `{"model":"m","prompt":"a cat"}`)
	if r.Status != 200 || !strings.Contains(r.Body, `"id":"obj-acme-k-1"`) || !strings.Contains(r.Body, `"path":"/v1/images/generations"`) {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
	if r := h.post(t.Context(), "/batches", `{"model":"fault/500"}`); r.Status != 500 {
		t.Errorf("got %d", r.Status)
	}

	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, _ := w.CreateFormFile("file", "speech.mp3")
	file.Write([]byte("\xff\xfb"))
	w.WriteField("model", "whisper")
	w.Close()
	for body, want := range map[string]int{form.String(): 200, form.String()[:40]: 400} {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", h.base+"/audio/transcriptions", strings.NewReader(body))
		req.Header.Set("Content-Type", w.FormDataContentType())
		resp, err := h.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a form got %d, want %d", resp.StatusCode, want)
		}
	}
	if n := h.p.Count("", "whisper"); n != 1 {
		t.Errorf("%d calls for the form's model", n)
	}
}
