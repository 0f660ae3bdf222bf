// Package dialecttest judges recorded streams and bodies in a dialect and compares what comes of
// it with transcripts.
package dialecttest

import (
	"bytes"
	"encoding/json"
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

// Transcripts judges what is in testdata/*.txtar. In an archive the comment says what it shows;
// NAME.sse is a stream and NAME.json a complete body, each followed by NAME.want. NAME.whole is a body that becomes a
// stream, and NAME.pieces a stream that becomes a body. Files whose
// names begin with "count-" answer a count of tokens, those with "other-" an unknown call.
//
// A folder in a name is the path below /v1/ that was asked: "embeddings/x.json".
func Transcripts(t *testing.T, d dialect.Dialect) {
	t.Helper()
	Archives(t, func(t *testing.T, given txtar.File) (string, bool) { return transcript(t, d, given), true })
}

// Archives compares what becomes of the files in testdata/*.txtar with the files behind them, called
// NAME.want, and writes those where the flag -update is given. become reports false for a file that others are read with, which has none.
func Archives(t *testing.T, become func(*testing.T, txtar.File) (string, bool)) {
	t.Helper()
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
			for i := 0; i < len(archive.Files); i++ {
				given, want := archive.Files[i], ""
				got, ok := become(t, given)
				if !ok {
					out = append(out, given)
					continue
				}
				if i+1 < len(archive.Files) && strings.HasSuffix(archive.Files[i+1].Name, ".want") {
					i++
					want = string(archive.Files[i].Data)
				}
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

func transcript(t *testing.T, d dialect.Dialect, given txtar.File) string {
	t.Helper()
	req := &dialect.Request{}
	folder, _, named := strings.Cut(given.Name, "/")
	switch {
	case named:
		asked, err := d.ReadRequest("/v1/"+folder, []byte(`{"model":"m"}`))
		if err != nil {
			t.Fatal(err)
		}
		req = asked
	case strings.HasPrefix(given.Name, "count-"):
		req.Operation = dialect.OpCount
	case strings.HasPrefix(given.Name, "other-"):
		req.Operation = dialect.OpOther
	case strings.HasPrefix(given.Name, "embed-"):
		req.Operation = dialect.OpEmbed
	}
	var out strings.Builder
	if strings.HasSuffix(given.Name, ".json") {
		a := d.Inspect(req, given.Data)
		out.WriteString(answerLine(&a))
		if a.Error {
			out.WriteString(errorLine(d, a.Envelope))
		}
		return out.String()
	}
	if strings.HasSuffix(given.Name, ".whole") {
		req.IncludeUsage = true
		out, ok := d.Streamed(req, given.Data, "req")
		if !ok {
			return "cannot be told as a stream\n"
		}
		return string(out)
	}
	if strings.HasSuffix(given.Name, ".pieces") {
		return gathered(t, d, given.Data)
	}
	r, st := sse.NewReader(bytes.NewReader(given.Data)), d.NewStream(req)
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		o := st.Observe(ev)
		out.WriteString(observationLine(&o))
		if o.Error {
			out.WriteString(errorLine(d, o.Envelope))
		}
	}
	a := st.Answer()
	out.WriteString(answerLine(&a))
	if f, ok := st.(dialect.Failer); ok && !a.Complete {
		fmt.Fprintf(&out, "  failed as: %s\n", bytes.ReplaceAll(bytes.TrimSpace(f.ErrorEvent(&dialect.ErrorReport{Message: "It broke off."})), []byte("\n"), []byte("\n  ")))
	}
	return out.String()
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
	if a.ID != "" {
		words = append(words, "id="+a.ID)
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

func errorLine(d dialect.Dialect, envelope []byte) string {
	e, ok := d.ReadError(envelope)
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

// gathered returns the whole answer that a stream becomes, and what is wrong with it.
func gathered(t *testing.T, d dialect.Dialect, stream []byte) string {
	t.Helper()
	g := d.NewGather("req")
	for r := sse.NewReader(bytes.NewReader(stream)); ; {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		g.Next(ev)
	}
	out, ok := g.Answer()
	if !ok {
		return "cannot be told whole\n"
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, out, "", " "); err != nil {
		return err.Error() + ": " + string(out) + "\n"
	}
	a := d.Inspect(&dialect.Request{}, out)
	return pretty.String() + "\n" + answerLine(&a)
}
