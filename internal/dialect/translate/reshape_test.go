package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// FuzzReshape: a whole answer that is told as a stream is one to its dialect, and says the same, also when it is
// made whole again.
func FuzzReshape(f *testing.F) {
	seeds(f, "answer")
	f.Fuzz(func(t *testing.T, body []byte) {
		var value any
		if json.Unmarshal(body, &value) != nil {
			return
		}
		body, _ = json.Marshal(value) // each member once
		asked := &dialect.Request{Stream: true, IncludeUsage: true}
		for _, d := range codecs {
			a := d.Inspect(asked, body)
			if a.Error || a.Malformed || a.Empty() {
				continue
			}
			stream, ok := d.Streamed(asked, trim(body), "req")
			if !ok {
				continue
			}
			again := gatherAgain(t, d, asked, stream)
			if !json.Valid(again) {
				t.Fatalf("%s: %s", d.Name(), again)
			}
			if said := read(d, body); said == nil {
				continue
			} else if diff := cmp.Diff(said, read(d, again)); diff != "" {
				t.Fatalf("%s: %s\nbecomes %s\nand %s\n%s", d.Name(), body, stream, again, diff)
			}
		}
	})
}

// read returns what an answer says, as far as a stream can: it has no parts without text, and no answer without an end.
func read(d neutral.Codec, body []byte) any {
	c := &neutral.Context{Request: &neutral.Request{}, Model: "m", Now: time.Unix(0, 0), ID: "req"}
	a, ok := d.ReadAnswer(c, trim(body))
	if !ok {
		return nil
	}
	said := map[neutral.PartKind]string{}
	calls := 0
	for _, p := range a.Parts {
		said[p.Kind] += p.Text
		if p.Kind == neutral.PartCall {
			said[p.Kind] += p.Call.Name + string(p.Call.Object())
			calls++
		}
	}
	for kind, text := range said {
		if text == "" {
			delete(said, kind)
		}
	}
	return []any{said, calls, a.Usage.Output}
}

func gatherAgain(t *testing.T, d neutral.Codec, asked *dialect.Request, stream []byte) []byte {
	t.Helper()
	st, g := d.NewStream(asked), d.NewGather("req")
	for r := sse.NewReader(bytes.NewReader(stream)); ; {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if o := st.Observe(ev); o.Malformed || o.Error {
			t.Fatalf("%s: %+v in %s", d.Name(), o, stream)
		}
		g.Next(ev)
	}
	if a := st.Answer(); d.Name() != "gemini" && !a.Complete { // Google's answers may have no end of their own
		t.Fatalf("%s: %+v of %s", d.Name(), a, stream)
	}
	out, ok := g.Answer()
	if !ok {
		t.Fatalf("%s: nothing of %s", d.Name(), stream)
	}
	return out
}

// FuzzGather: whatever a stream's events are, what they add up to is JSON.
func FuzzGather(f *testing.F) {
	seeds(f, "stream")
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, d := range codecs {
			st, g := d.NewStream(&dialect.Request{Stream: true}), d.NewGather("req")
			for r := sse.NewReader(bytes.NewReader(data)); ; {
				ev, err := r.Next()
				if err != nil {
					break
				}
				if o := st.Observe(ev); !o.Malformed && !o.Error && !o.Skip {
					g.Next(ev)
				}
			}
			if out, ok := g.Answer(); ok && !json.Valid(out) {
				t.Fatalf("%s: %s", d.Name(), out)
			}
		}
	})
}
