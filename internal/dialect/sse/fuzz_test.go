package sse

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// pieces hands out the text in reads of the given sizes, over and over.
type pieces struct {
	text  []byte
	sizes []byte
	next  int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := len(p.text)
	if len(p.sizes) > 0 {
		n = int(p.sizes[p.next%len(p.sizes)])
		p.next++
	}
	n = copy(b, p.text[:min(n, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

// FuzzSplits: however the bytes are cut, the events are those of the reference parser, and
// what was written out reads back the same.
func FuzzSplits(f *testing.F) {
	f.Add([]byte("\ufeff: c\r\nid: 1\revent: e\ndata: a\r\n\r\ndata:b\ndata\n\n\r\rdata: [DONE]"), []byte{1, 2, 3})
	f.Add([]byte("data: a\r\n\r\ndata: b\r\n\r\n"), []byte{8, 1, 1})
	f.Add([]byte("\xef\xbb\xbf"), []byte{1})
	f.Fuzz(func(t *testing.T, text, sizes []byte) {
		same(t, text, sizes)
	})
}

func same(t interface {
	Fatalf(string, ...any)
}, text, sizes []byte) {
	zeros := 0
	for _, n := range sizes {
		if n == 0 {
			zeros++
		}
	}
	if zeros == len(sizes) || zeros >= maxEmptyReads {
		sizes = nil
	}
	want := reference(string(text))
	got, err := readAll(&pieces{text: append([]byte(nil), text...), sizes: sizes})
	if err != nil {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q in pieces of %v:\n%s", text, sizes, diff)
	}
	var written []byte
	for i := range got {
		written = append(written, got[i].Raw...)
		got[i].Unterminated = false
	}
	again, err := readAll(&pieces{text: written})
	if err != nil {
		t.Fatalf("%v", err)
	}
	// A mark that was inside the stream may have come to its beginning.
	if len(got) > 0 && len(got[0].Raw) >= 3 && got[0].Raw[:3] == "\ufeff" {
		return
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Fatalf("%q does not read back:\n%s", text, diff)
	}
}

// TestStreams builds long streams of plausible blocks, which a fuzzer rarely does.
func TestStreams(t *testing.T) {
	t.Parallel()
	lineEnd := rapid.SampledFrom([]string{"\n", "\r", "\r\n"})
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"data: [DONE]", "data:", "data", ":", ": ping", "event: error", "id: 1", "retry: 5", "", "\ufeff", "foo"}),
		rapid.Custom(func(t *rapid.T) string {
			return "data: " + string(rapid.SliceOfN(rapid.ByteRange(0x20, 0xff), 0, 3000).Draw(t, "data"))
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for range rapid.IntRange(0, 40).Draw(t, "lines") {
			text = append(append(text, line.Draw(t, "line")...), lineEnd.Draw(t, "end")...)
		}
		if rapid.Bool().Draw(t, "tail") {
			text = append(text, line.Draw(t, "line")...)
		}
		same(t, text, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "sizes"))
	})
}
