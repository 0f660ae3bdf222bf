package openai

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

var update = flag.Bool("update", false, "write what the transcripts give into them")

// TestTranscripts judges the streams and bodies in testdata. In an archive the comment says
// what rule it shows, the first line of a file's name tells what it is: NAME.sse a stream,
// NAME.json a complete body, each followed by NAME.want. A folder other than "chat" in the
// name is the endpoint: embeddings/x.json.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var out []txtar.File
			files := archive.Files
			for len(files) > 0 {
				given := files[0]
				files = files[1:]
				want := ""
				if len(files) > 0 && strings.HasSuffix(files[0].Name, ".want") {
					want = string(files[0].Data)
					files = files[1:]
				}
				got := transcript(t, given)
				name, _, _ := strings.Cut(given.Name, ".")
				out = append(out, given, txtar.File{Name: name + ".want", Data: []byte(got)})
				if diff := cmp.Diff(want, got); diff != "" && !*update {
					t.Errorf("%s:\n%s", given.Name, diff)
				}
			}
			if *update {
				archive.Files = out
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func transcript(t *testing.T, given txtar.File) string {
	t.Helper()
	path := "/v1/chat/completions"
	if folder, _, ok := strings.Cut(given.Name, "/"); ok {
		path = "/v1/" + folder
	}
	req := &dialect.Request{Operation: operation(path)}
	var out strings.Builder
	if strings.HasSuffix(given.Name, ".json") {
		a := Dialect{}.Inspect(req, given.Data)
		out.WriteString(answerLine(&a))
		if a.Error {
			out.WriteString(errorLine(a.Envelope))
		}
		return out.String()
	}
	r, st := sse.NewReader(bytes.NewReader(given.Data)), Dialect{}.NewStream(req)
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		obs := st.Observe(ev)
		out.WriteString(observationLine(&obs))
		if obs.Error {
			out.WriteString(errorLine(obs.Envelope))
		}
	}
	a := st.Answer()
	return out.String() + answerLine(&a)
}

func observationLine(o *dialect.Observation) string {
	words := flags("content", o.Content, "tool", o.ToolCall, "error", o.Error, "malformed", o.Malformed,
		"skip", o.Skip, "usage", o.UsageReported, "terminal", o.Terminal)
	if o.Finish != dialect.FinishNone {
		words = append(words, "finish="+o.Finish.String())
	}
	if len(words) == 0 {
		return "-\n"
	}
	return strings.Join(words, " ") + "\n"
}

func answerLine(a *dialect.Answer) string {
	words := append([]string{"answer:"}, flags("content", a.Content, "tool", a.ToolCall, "error", a.Error,
		"malformed", a.Malformed, "empty", a.Empty(), "complete", a.Complete, "terminated", a.Terminated)...)
	if a.Finish != dialect.FinishNone {
		words = append(words, fmt.Sprintf("finish=%s(%s)", a.Finish, a.NativeFinish))
	}
	if a.Dropped > 0 {
		words = append(words, fmt.Sprintf("dropped=%d", a.Dropped))
	}
	if a.Model != "" {
		words = append(words, "model="+a.Model)
	}
	if u := a.Usage; u.Known {
		words = append(words, fmt.Sprintf("in=%d out=%d", u.Input, u.Output))
		if u.CacheRead+u.CacheWrite+u.Reasoning > 0 {
			words = append(words, fmt.Sprintf("cached=%d written=%d reasoning=%d", u.CacheRead, u.CacheWrite, u.Reasoning))
		}
	}
	return strings.Join(words, " ") + "\n"
}

func errorLine(envelope []byte) string {
	e, ok := Dialect{}.ReadError(envelope)
	if !ok {
		return fmt.Sprintf("  envelope %q\n", envelope)
	}
	return fmt.Sprintf("  message=%q type=%q code=%q param=%q\n", e.Message, e.Type, e.Code, e.Param)
}

func flags(pairs ...any) []string {
	var words []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1].(bool) {
			words = append(words, pairs[i].(string))
		}
	}
	return words
}
