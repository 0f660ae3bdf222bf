package translate

import (
	"strings"
	"testing"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sample"
	"omniroute/internal/dialect/sse"
)

// BenchmarkChunk is one typical text chunk of each upstream for each kind of client.
func BenchmarkChunk(b *testing.B) {
	for _, to := range codecs {
		for _, from := range codecs {
			if from == to {
				continue
			}
			b.Run(to.Name()+"-to-"+from.Name(), func(b *testing.B) {
				tr := benchTranslation(b, from, to, 1)
				st := tr.Stream()
				ev, err := sse.NewReader(strings.NewReader(sample.Chunk(to.Name()))).Next()
				if err != nil {
					b.Fatal(err)
				}
				ev = ev.Clone()
				b.ReportAllocs()
				for b.Loop() {
					if len(st.Next(ev)) == 0 {
						b.Fatal("no chunk")
					}
				}
			})
		}
	}
}

// BenchmarkRequest is an agent's request of 100 turns, some 60 KiB, with 20 tools.
func BenchmarkRequest(b *testing.B) {
	for _, from := range codecs {
		for _, to := range codecs {
			if from == to {
				continue
			}
			b.Run(from.Name()+"-to-"+to.Name(), func(b *testing.B) {
				asked := benchRequest(b, from, 100)
				b.SetBytes(int64(len(asked.Body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := New(from, to, asked, Options{Model: "m-1", Now: time.Unix(0, 0), ID: "r"}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func benchTranslation(b *testing.B, from, to dialect.Dialect, turns int) *Translation {
	b.Helper()
	tr, err := New(from, to, benchRequest(b, from, turns), Options{Model: "m-1", Now: time.Unix(0, 0), ID: "r"})
	if err != nil {
		b.Fatal(err)
	}
	return tr
}

// benchRequest writes a chat and lets the dialect say it in its own words.
func benchRequest(b *testing.B, d dialect.Dialect, turns int) *dialect.Request {
	b.Helper()
	asked, err := Dialect("openai").ReadRequest("/v1/chat/completions", sample.Agent(turns))
	if err != nil || d.Name() == "openai" {
		return asked
	}
	tr, err := New(Dialect("openai"), d, asked, Options{Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	path, _, _ := strings.Cut(tr.Path(), "?")
	own, err := d.ReadRequest("/v1"+path, tr.Body())
	if err != nil {
		b.Fatal(err)
	}
	return own
}
