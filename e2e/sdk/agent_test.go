package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"

	"omniroute/e2e/upstream"
)

// job is one cell of the matrix for an agent: a scene, and how it is asked for.
type job struct {
	Model  string `json:"model"`
	Scene  string `json:"scene"`
	Stream bool   `json:"stream"`
}

// outcome is what an official client made of an answer. npm/matrix.mjs prints the same as JSON.
type outcome struct {
	Text    string `json:"text"`
	Thought string `json:"thought"`
	// Calls are the first answer's, Text is the last one's.
	Calls []used `json:"calls"`
	// Finish is the first answer's reason to stop, in the client's own words.
	Finish string `json:"finish"`
	Input  int64  `json:"input"`
	Output int64  `json:"output"`
	// Status is an HTTP error's, Error any error's message.
	Status int    `json:"status"`
	Error  string `json:"error"`
	// Problem is what the client's accumulator or helper did not like.
	Problem string `json:"problem"`
}

type used struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// agent is an official client with one of its APIs. It never repeats a call by itself.
type agent struct {
	name string
	// dialect is the API's, as a provider's `dialect` names it.
	dialect string
	run     func(t *testing.T, base string, jobs []job) []outcome
	// finish and toolFinish are the API's words for an answer that is complete, and for one that
	// wants tools.
	finish, toolFinish string
}

var agents = []agent{
	{"go chat", "openai", eachGo(newGoChat), "stop", "tool_calls"},
	{"go responses", "responses", eachGo(newGoResponses), "completed", "completed"},
	{"go messages", "anthropic", eachGo(newGoMessages), "end_turn", "tool_use"},
	{"go genai", "gemini", eachGo(newGoGenai), "STOP", "STOP"},
	{"npm chat", "openai", npmAgent("chat"), "stop", "tool_calls"},
	{"npm responses", "responses", npmAgent("responses"), "completed", "completed"},
	{"npm messages", "anthropic", npmAgent("messages"), "end_turn", "tool_use"},
}

// talk plays one scene with a Go client.
type talk func(t *testing.T, j job) outcome

// eachGo makes an agent of a Go client.
func eachGo(dial func(t *testing.T, base string, hc *http.Client) talk) func(*testing.T, string, []job) []outcome {
	return func(t *testing.T, base string, jobs []job) []outcome {
		t.Helper()
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		play := dial(t, base, &http.Client{Transport: transport, Timeout: callTime})
		out := make([]outcome, len(jobs))
		for i, j := range jobs {
			out[i] = play(t, j)
		}
		return out
	}
}

// tools are the definitions that every client sends in the scenes with tools: name, description
// and JSON schema.
var tools = []struct {
	name, description string
	properties        map[string]any
	required          []string
}{
	{"weather", "The weather of a city.", map[string]any{
		"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer"},
	}, []string{"city"}},
	{"clock", "The time in a zone.", map[string]any{"zone": map[string]any{"type": "string"}}, []string{"zone"}},
}

func object(properties map[string]any, required []string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// answerSchema is that of the scene "schema".
var answerSchema = object(map[string]any{"answer": map[string]any{"type": "integer"}}, []string{"answer"})

func usesTools(scene string) bool { return scene == "tools" || scene == "parallel" }

// resultOf is what the tool of that name says.
func resultOf(name string) string {
	for _, c := range upstream.Calls {
		if c.Name == name {
			return c.Result
		}
	}
	return "no such tool"
}

// check returns what is wrong with an outcome, or "".
func (a agent) check(j job, got outcome) string {
	want := upstream.Want(j.Scene)
	if got.Problem != "" {
		return "the client's helper: " + got.Problem
	}
	switch {
	case want.Status != 0:
		if got.Status != want.Status {
			return fmt.Sprintf("status %d, want %d: %s", got.Status, want.Status, got.Error)
		}
		return ""
	case want.Broken:
		if got.Error == "" {
			return fmt.Sprintf("an answer that broke off looks whole: %q, %q", got.Text, got.Finish)
		}
		if got.Text == "" || !strings.HasPrefix(want.Text, got.Text) {
			return fmt.Sprintf("before the error %q, want the beginning of %q", got.Text, want.Text)
		}
		return ""
	case got.Error != "":
		return fmt.Sprintf("status %d: %s", got.Status, got.Error)
	}
	var wrong []string
	expect := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s %v, want %v", what, got, want))
		}
	}
	expect("text", got.Text, want.Text)
	expect("thought", got.Thought, want.Thought)
	expect("input tokens", got.Input, int64(upstream.Input))
	expect("output tokens", got.Output, int64(upstream.Output))
	expect("calls", len(got.Calls), len(want.Calls))
	for i, c := range want.Calls[:min(len(want.Calls), len(got.Calls))] {
		expect("id", got.Calls[i].ID, c.ID)
		expect("tool", got.Calls[i].Name, c.Name)
		expect("arguments", value(got.Calls[i].Args), value(c.Args))
	}
	finish := a.finish
	if len(want.Calls) > 0 {
		finish = a.toolFinish
	}
	expect("finish", got.Finish, finish)
	return strings.Join(wrong, "; ")
}

// value is the JSON text's value, or the text where it is none.
func value(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return v
}

// failed is the outcome of an error; status reads its HTTP status, 0 where it has none.
func (o outcome) failed(err error, status func(error) int) outcome {
	if err != nil {
		o.Error, o.Status = err.Error(), status(err)
		if api := (*openai.Error)(nil); errors.As(err, &api) {
			o.Error += ": " + api.Message // which its text leaves out
		}
	}
	return o
}

// statusOf reads the status of an SDK's error type.
func statusOf[E error](code func(E) int) func(error) int {
	return func(err error) int {
		var api E
		if errors.As(err, &api) {
			return code(api)
		}
		return 0
	}
}
