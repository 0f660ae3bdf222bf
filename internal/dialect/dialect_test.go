package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestReadJSON(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Request{
		`{"model":"m"}`: {Model: "m"},
		` { "stream" : true , "model" : "a/b", "stream_options":{"include_usage":true,"x":[]}} `:    {Model: "a/b", Stream: true, IncludeUsage: true},
		`{"model":"caf\u00e9 \"x\"","stream":null,"stream_options":null}`:                           {Model: `café "x"`},
		`{"model":"first","model":"last"}`:                                                          {Model: "last"},
		`{"\u006dodel":"m","stream":false,"stream_options":{"include_usage":false}}`:                {Model: "m"},
		`{"messages":[{"model":"not me","stream":true}],"metadata":{"model":"nor me"},"model":"m"}`: {Model: "m"},
	} {
		r, err := ReadJSON(OpGenerate, "/p", []byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if r.Model != want.Model || r.Stream != want.Stream || r.IncludeUsage != want.IncludeUsage || r.Path != "/p" || string(r.Body) != body {
			t.Errorf("%s: %+v", body, r)
		}
	}
}

func TestReadJSONRefuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]RequestError{
		"":                              {"The request has no body; send a JSON object with a model.", "", 0},
		" \n":                           {"The request has no body; send a JSON object with a model.", "", 0},
		`["model"]`:                     {"The request's body must be a JSON object.", "", 0},
		`{"model":"m"`:                  {"The request's body is not valid JSON: unexpected end of JSON at byte 12.", "", 12},
		`{"model":"m","x":tru}`:         {"The request's body is not valid JSON: not a JSON value at byte 20.", "", 20},
		`{"model":"m"} {}`:              {"The request's body is not valid JSON: more text after the end of the JSON value at byte 14.", "", 14},
		`{"messages":[]}`:               {"The field model is missing: name a combo, a provider/model or a model.", "model", -1},
		`{"model":""}`:                  {"The field model is empty: name a combo, a provider/model or a model.", "model", 9},
		`{"model":5}`:                   {"The field model must be a string, like \"gpt-5.2\".", "model", 9},
		`{"model":null}`:                {"The field model must be a string, like \"gpt-5.2\".", "model", 9},
		`{"model":"m","model":["x"]}`:   {"The field model must be a string, like \"gpt-5.2\".", "model", 21},
		`{"model":"m","stream":"true"}`: {"The field stream must be true or false.", "stream", 22},
		`{"model":{"a":1},"stream":1,}`: {"The request's body is not valid JSON: missing string at byte 28.", "", 28},
		strings.Repeat(`{"a":`, 20000):  {"The request's body is not valid JSON: too deeply nested at byte 50005.", "", 50005},
	} {
		_, err := ReadJSON(OpGenerate, "/p", []byte(body))
		var got *RequestError
		if !errors.As(err, &got) {
			t.Errorf("%.40s: got %v", body, err)
			continue
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%.40s:\n%s", body, diff)
		}
		if r := got.Report(); r.StatusCode() != 400 || r.Message != got.Error() || r.Param != got.Param {
			t.Errorf("%.40s: reported as %+v", body, r)
		}
	}
}

func TestForModel(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"{\"a\":1.0,\r\n \"model\" :  \"x\"\t, \"z\":\"\\u0041\"}": "{\"a\":1.0,\r\n \"model\" :  \"new/\\\"n\\\"\"\t, \"z\":\"\\u0041\"}",
		`{"model":"x","m":{"model":"x"},"model":"y"}`:              `{"model":"new/\"n\"","m":{"model":"x"},"model":"new/\"n\""}`,
		`{"mod\u0065l":"x\"y"}`:                                    `{"mod\u0065l":"new/\"n\""}`,
	} {
		r, err := ReadJSON(OpGenerate, "/p", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		path, got := r.ForModel(`new/"n"`)
		if string(got) != want || path != "/p" {
			t.Errorf("%s: %s %s", body, path, got)
		}
		if string(r.Body) != body {
			t.Errorf("the client's body changed: %s", r.Body)
		}
	}
	r, err := ReadJSON(OpGenerate, "/p", []byte(`{"model":"same"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, got := r.ForModel("same"); &got[0] != &r.Body[0] {
		t.Error("an unchanged body was copied")
	}
	inPath := &Request{Path: "/v1beta/models/combo:generateContent", Body: []byte(`{"model":"not here"}`), Model: "combo", PathModel: Span{15, 20}}
	if path, got := inPath.ForModel("gemini-3"); path != "/v1beta/models/gemini-3:generateContent" || string(got) != `{"model":"not here"}` {
		t.Errorf("%s %s", path, got)
	}
}

// TestForModelProperty: apart from the model the JSON stays the same, byte by byte outside
// of the values and by value as a whole.
func TestForModelProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{"model": rapid.String().Draw(t, "old") + "x", "stream": rapid.Bool().Draw(t, "stream")}
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			key := rapid.SampledFrom([]string{"messages", "models", "model ", "metadata", "a\"b", "ü"}).Draw(t, "key")
			doc[key] = rapid.SampledFrom([]any{nil, 1.5, "model", []any{map[string]any{"model": "inner"}}, map[string]any{"model": "inner"}}).Draw(t, "value")
		}
		var body []byte
		if rapid.Bool().Draw(t, "indent") {
			body, _ = json.MarshalIndent(doc, "", "\t")
		} else {
			body, _ = json.Marshal(doc)
		}
		r, err := ReadJSON(OpGenerate, "/p", body)
		if err != nil {
			t.Fatal(err)
		}
		model := rapid.String().Draw(t, "new")
		_, out := r.ForModel(model)
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		doc["model"] = strings.ToValidUTF8(model, "\ufffd")
		want, _ := json.Marshal(doc)
		again, _ := json.Marshal(got)
		if !bytes.Equal(want, again) {
			t.Fatalf("got %s, want %s", again, want)
		}
		back, err := ReadJSON(OpGenerate, "/p", out)
		if model == "" {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, restored := back.ForModel(r.Model); !bytes.Equal(restored, spelled(r)) {
			t.Fatalf("restored %s, had %s", restored, body)
		}
	})
}

// spelled returns the request's body with its model in our own spelling.
func spelled(r *Request) []byte {
	quoted := AppendString(nil, r.Model)
	s := r.BodyModels[0]
	return append(append(append([]byte(nil), r.Body[:s.Start]...), quoted...), r.Body[s.End:]...)
}

func FuzzReadJSON(f *testing.F) {
	f.Add([]byte(`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`))
	f.Add([]byte(`{"model":"m","model":"n"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ReadJSON(OpGenerate, "/p", body)
		if err != nil {
			var fault *RequestError
			if !errors.As(err, &fault) {
				t.Fatalf("%T", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is not JSON", body)
		}
		_, out := r.ForModel("new")
		again, err := ReadJSON(OpGenerate, "/p", out)
		if err != nil || again.Model != "new" || again.Stream != r.Stream || again.IncludeUsage != r.IncludeUsage {
			t.Fatalf("%q became %q: %+v, %v", body, out, again, err)
		}
	})
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	if got := string(AppendString(nil, "a\"\\\n\r\t\x01\x7f<&>é\u2028\xff😀")); got != `"a\"\\\n\r\t\u0001\u007f<&>é\u2028`+"\ufffd"+`😀"` {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		var back string
		if err := json.Unmarshal(AppendString(nil, s), &back); err != nil || back != s {
			t.Fatalf("%q: %q, %v", s, back, err)
		}
	})
}

func TestBoundedMessage(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "short", strings.Repeat("é", MaxMessage/2), strings.Repeat("x", MaxMessage)} {
		if got := (&ErrorReport{Message: s}).BoundedMessage(); got != s {
			t.Errorf("%.10s… was cut", s)
		}
	}
	for _, s := range []string{strings.Repeat("é", MaxMessage), "x" + strings.Repeat("😀", MaxMessage), strings.Repeat("\xbf", 2*MaxMessage)} {
		got := (&ErrorReport{Message: s}).BoundedMessage()
		if !utf8.ValidString(got) || !strings.HasSuffix(got, "…") || len(got) > MaxMessage+len("…") || len(got) < MaxMessage-utf8.UTFMax && utf8.ValidString(s) {
			t.Errorf("%.10s…: %d bytes, %q", s, len(got), got[len(got)-10:])
		}
	}
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		CodeAllTargetsUnavailable: 503, CodeNoConnection: 503, CodeLocalNetwork: 503, CodeQueueFull: 503, CodeShuttingDown: 503,
		CodeModelNotFound: 404, CodeDeadlineExceeded: 504, CodeInvalidAPIKey: 401, CodeClientRateLimited: 429, CodeRequestTooLarge: 413, CodeUpstreamError: 502,
		"theirs": 500,
	}
	for code, status := range want {
		if got := (&ErrorReport{Code: code}).StatusCode(); got != status {
			t.Errorf("%s: %d", code, got)
		}
		if got := (&ErrorReport{Code: code, Status: 429}).StatusCode(); got != 429 {
			t.Errorf("%s with a status: %d", code, got)
		}
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	for finish, excused := range map[Finish]bool{
		FinishNone: false, FinishStop: false, FinishError: false, FinishOther: false,
		FinishLength: true, FinishToolCalls: true, FinishFilter: true,
	} {
		if a := (Answer{Finish: finish}); a.Empty() == excused {
			t.Errorf("%v: empty is %v", finish, a.Empty())
		}
		if a := (Answer{Finish: finish, Content: true}); a.Empty() {
			t.Errorf("%v with content is empty", finish)
		}
		if a := (Answer{Finish: finish, Usage: Usage{Known: true, Output: 1}}); a.Empty() {
			t.Errorf("%v with output tokens is empty", finish)
		}
	}
}

func TestDetailRoundsUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{0: 0, -time.Second: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2} {
		if got := (&ErrorReport{RequestID: "r", RetryAfter: d}).Detail().RetryAfterMS; got != want {
			t.Errorf("%v: %d", d, got)
		}
	}
	if (&ErrorReport{}).Detail() != nil {
		t.Error("detail without a request id")
	}
}

func TestSniff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		contentType, head string
		want              Format
	}{
		{"text/event-stream; charset=utf-8", "", FormatSSE},
		{"Text/Event-Stream;;", "", FormatSSE},
		{"application/json", "data: {", FormatSSE},
		{"application/json", ": ping", FormatSSE},
		{"", "\ufeffevent: x", FormatSSE},
		{"text/event-stream", " \r\n{\"a\"", FormatJSON},
		{"application/problem+json", "", FormatJSON},
		{"", "[", FormatJSON},
		{"application/json", "<!doctype", FormatHTML},
		{"text/html", "", FormatHTML},
		{"audio/mpeg", "ID3", FormatUnknown},
		{"", "da", FormatUnknown},
		{"", "", FormatUnknown},
	} {
		if got := Sniff(c.contentType, []byte(c.head)); got != c.want {
			t.Errorf("%q %q: %d, want %d", c.contentType, c.head, got, c.want)
		}
	}
}

func body60KB() []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"combo","stream":true,"messages":[`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"role":"user","content":"` + strings.Repeat(`a line of a longer text that someone wrote with \"quotes\"\n`, 50) + `"}`)
	}
	b.WriteString(`],"temperature":0.2}`)
	return b.Bytes()
}

func BenchmarkRequest60KB(b *testing.B) {
	body := body60KB()
	r, err := ReadJSON(OpGenerate, "/v1/chat/completions", body)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = ReadJSON(OpGenerate, "/v1/chat/completions", body)
		}
	})
	b.Run("splice", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			r.ForModel("gpt-5.2")
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Open("gpt-5.2")
		}
	})
	b.Run("map", func(b *testing.B) { // what it saves
		for b.Loop() {
			var m map[string]any
			_ = json.Unmarshal(body, &m)
			m["model"] = "gpt-5.2"
			_, _ = json.Marshal(m)
		}
	})
}
