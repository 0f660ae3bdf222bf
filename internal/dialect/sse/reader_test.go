package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func blockOf(ev *Event) block {
	return block{
		Raw: string(ev.Raw), Name: string(ev.Name), Data: string(ev.Data), ID: string(ev.ID),
		HasData: ev.HasData, Comment: ev.Comment, Unterminated: ev.Unterminated,
	}
}

func readAll(src io.Reader) ([]block, error) {
	r := NewReader(src)
	var out []block
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, blockOf(ev))
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []block
	}{
		"nothing":          {"", nil},
		"only blank lines": {"\n\r\n\r\r", nil},
		"plain":            {"data: a\n\n", []block{{Raw: "data: a\n\n", Data: "a", HasData: true}}},
		"no space":         {"data:a\n\n", []block{{Raw: "data:a\n\n", Data: "a", HasData: true}}},
		"one space only":   {"data:  a\n\n", []block{{Raw: "data:  a\n\n", Data: " a", HasData: true}}},
		"no colon":         {"data\n\n", []block{{Raw: "data\n\n", HasData: true}}},
		"CRLF":             {"data: a\r\n\r\n", []block{{Raw: "data: a\n\n", Data: "a", HasData: true}}},
		"CR":               {"data: a\r\rdata: b\r\r", []block{{Raw: "data: a\n\n", Data: "a", HasData: true}, {Raw: "data: b\n\n", Data: "b", HasData: true}}},
		"mixed":            {"data: a\r\ndata: b\r\n\ndata: c\n\r", []block{{Raw: "data: a\ndata: b\n\n", Data: "a\nb", HasData: true}, {Raw: "data: c\n\n", Data: "c", HasData: true}}},
		"BOM":              {"\ufeffdata: a\n\n", []block{{Raw: "data: a\n\n", Data: "a", HasData: true}}},
		"BOM inside":       {"data: a\n\n\ufeffdata: b\n\n", []block{{Raw: "data: a\n\n", Data: "a", HasData: true}, {Raw: "\ufeffdata: b\n\n"}}},
		"half a BOM":       {"\xef\xbb", []block{{Raw: "\xef\xbb\n\n", Unterminated: true}}},
		"comment":          {": ping\n\n:\n\n", []block{{Raw: ": ping\n\n", Comment: true}, {Raw: ":\n\n", Comment: true}}},
		"comment above":    {": x\ndata: a\n\n", []block{{Raw: ": x\ndata: a\n\n", Data: "a", HasData: true}}},
		"fields":           {"id: 7\nevent: e\nretry: 10\nfoo: bar\ndata: a\n\n", []block{{Raw: "id: 7\nevent: e\nretry: 10\nfoo: bar\ndata: a\n\n", Name: "e", ID: "7", Data: "a", HasData: true}}},
		"no data":          {"event: e\n\n", []block{{Raw: "event: e\n\n", Name: "e"}}},
		"last name counts": {"event: e\nevent: f\ndata: a\n\n", []block{{Raw: "event: e\nevent: f\ndata: a\n\n", Name: "f", Data: "a", HasData: true}}},
		"id with NUL":      {"id: a\x00\ndata: a\n\n", []block{{Raw: "id: a\x00\ndata: a\n\n", Data: "a", HasData: true}}},
		"three data lines": {"data: a\ndata:\ndata: c\n\n", []block{{Raw: "data: a\ndata:\ndata: c\n\n", Data: "a\n\nc", HasData: true}}},
		"near names":       {"datax: a\nevents: b\n\n", []block{{Raw: "datax: a\nevents: b\n\n"}}},
		"no blank line":    {"data: a\n\ndata: [DONE]\n", []block{{Raw: "data: a\n\n", Data: "a", HasData: true}, {Raw: "data: [DONE]\n\n", Data: "[DONE]", HasData: true, Unterminated: true}}},
		"no line end":      {"data: [DONE]", []block{{Raw: "data: [DONE]\n\n", Data: "[DONE]", HasData: true, Unterminated: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, reference(c.text)); diff != "" {
				t.Fatalf("the reference parser differs:\n%s", diff)
			}
			for how, src := range map[string]io.Reader{
				"at once":     strings.NewReader(c.text),
				"by bytes":    iotest.OneByteReader(strings.NewReader(c.text)),
				"by halves":   iotest.HalfReader(strings.NewReader(c.text)),
				"with an EOF": iotest.DataErrReader(strings.NewReader(c.text)),
			} {
				got, err := readAll(src)
				if err != nil {
					t.Errorf("%s: %v", how, err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s:\n%s", how, diff)
				}
			}
		})
	}
}

// TestNoWaitForTheNextByte reads an event whose end is a CR: whether an LF belongs to it
// must not be waited for.
func TestNoWaitForTheNextByte(t *testing.T) {
	t.Parallel()
	src, w := io.Pipe()
	go func() {
		// Nothing more comes and the pipe stays open: Next would hang.
		_, _ = w.Write([]byte("data: a\r\r"))
	}()
	ev, err := NewReader(src).Next()
	if err != nil || string(ev.Data) != "a" {
		t.Fatalf("got %v, %v", ev, err)
	}
}

func TestTransportErrorDropsTheUnfinishedEvent(t *testing.T) {
	t.Parallel()
	cut := errors.New("connection reset")
	got, err := readAll(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(cut)))
	if !errors.Is(err, cut) || len(got) != 1 || got[0].Data != "a" {
		t.Fatalf("got %v, %v", got, err)
	}
	wrapped := fmt.Errorf("decompressing: %w", io.EOF)
	if got, err := readFirst(io.MultiReader(strings.NewReader("data: a"), iotest.ErrReader(wrapped))); got != nil || err != wrapped { //nolint:errorlint // the very same
		t.Fatalf("a wrapped EOF is a failure, got %v, %v", got, err)
	}
	r := NewReader(iotest.ErrReader(cut))
	for range 3 {
		if _, err := r.Next(); !errors.Is(err, cut) {
			t.Fatalf("errors are final, got %v", err)
		}
	}
}

func readFirst(src io.Reader) (*Event, error) { return NewReader(src).Next() }

func TestLimit(t *testing.T) {
	t.Parallel()
	const limit = 20
	fits := "data: " + strings.Repeat("x", limit-len("data: \n"))
	for text, ok := range map[string]bool{
		fits + "\n\n":              true,
		fits + "x\n\n":             false,
		fits + "\n":                true,
		fits + "xx":                false,
		"\n\n\n" + fits + "\n\n":   true,
		"data: a\n\n" + fits + "x": true, // at the end a missing LF is forgiven
		": " + strings.Repeat("c", limit) + "\n\n": false,
	} {
		for how, src := range map[string]io.Reader{
			"at once":  strings.NewReader(text),
			"by bytes": iotest.OneByteReader(strings.NewReader(text)),
		} {
			r := NewReaderSize(src, limit)
			var err error
			for err == nil {
				_, err = r.Next()
			}
			var tooLarge *TooLargeError
			if got := !errors.As(err, &tooLarge); got != ok {
				t.Errorf("%q %s: %v", text, how, err)
			}
			if !ok && tooLarge.Limit != limit {
				t.Errorf("limit %d reported", tooLarge.Limit)
			}
		}
	}
}

func TestEightMiB(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("é", 4<<20)
	got, err := readAll(strings.NewReader("data: " + data + "\n\ndata: b\n\n"))
	if err != nil || len(got) != 2 || got[0].Data != data || got[1].Data != "b" {
		t.Fatalf("%d events, %v", len(got), err)
	}
	_, err = readAll(strings.NewReader("data: " + data + data + "\n\n"))
	var tooLarge *TooLargeError
	if !errors.As(err, &tooLarge) {
		t.Fatalf("got %v", err)
	}
}

// TestMemoryGoesBack reads one large event and then small ones.
func TestMemoryGoesBack(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10 << 10, 60 << 10, 1 << 20} {
		small := strings.Repeat("data: small\n\n", 2*calm)
		r := NewReader(iotest.HalfReader(strings.NewReader("data: " + strings.Repeat("x", size) + "\n\n" + small + "data: last\n\n")))
		if len(r.buf) != 0 {
			t.Errorf("%d bytes before the first read", len(r.buf))
		}
		largest, last := 0, 0
		for {
			ev, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			largest = max(largest, len(r.buf))
			if string(ev.Data) == "last" {
				last = len(r.buf)
			}
		}
		if largest < size || largest > 4*size+startBuf || last != startBuf {
			t.Errorf("event of %d bytes: buffer up to %d, %d at the end", size, largest, last)
		}
		if r.buf != nil || r.data != nil {
			t.Error("memory is kept after the end")
		}
	}
}

// TestBuffersFollowTheStream counts what a stream of small events keeps that comes slowly, and one
// that comes faster than it is read.
func TestBuffersFollowTheStream(t *testing.T) {
	t.Parallel()
	const event = "data: {\"choices\":[{\"delta\":{\"content\":\"a word\"}}]}\n\n"
	burst := strings.Repeat(event, 1000)
	all := []string{event, event, burst, event}
	for range 2 * calm {
		all = append(all, event)
	}
	src := &parts{left: all}
	r := NewReader(src)
	slow, fast := 0, 0
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case len(src.left) == 0: // the end of the calm after the burst
		case len(src.left) == len(all)-1:
			slow = max(slow, len(r.buf))
		default:
			fast = max(fast, len(r.buf))
		}
		if len(src.left) == 1 && len(r.buf) != startBuf {
			t.Errorf("%d bytes are kept after the burst", len(r.buf))
		}
	}
	if slow != startBuf || fast != busyBuf {
		t.Errorf("a slow stream keeps %d bytes, a fast one %d; want %d and %d", slow, fast, startBuf, busyBuf)
	}
}

// parts gives each part in reads of its own.
type parts struct{ left []string }

func (p *parts) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	if p.left[0] = p.left[0][n:]; p.left[0] == "" {
		p.left = p.left[1:]
	}
	return n, nil
}

func TestNoProgress(t *testing.T) {
	t.Parallel()
	if _, err := NewReader(silent{}).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Fatalf("got %v", err)
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestCloneOutlivesNext(t *testing.T) {
	t.Parallel()
	r := NewReader(iotest.OneByteReader(strings.NewReader("id: 1\nevent: a\ndata: b\ndata: c\n\nid: 2\nevent: x\ndata: y\ndata: z\n\n")))
	ev, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	want, kept := blockOf(ev), ev.Clone()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, blockOf(kept)); diff != "" {
		t.Error(diff)
	}
}

func TestWriting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, data, want string }{
		{"", "a", "data: a\n\n"},
		{"", "", "data: \n\n"},
		{"error", "a\nb\r\nc\rd", "event: error\ndata: a\ndata: b\ndata: c\ndata: d\n\n"},
		{"split\ndata: injected", "a\n", "event: split\ndata: a\ndata: \n\n"},
	} {
		if got := string(Append(nil, c.name, []byte(c.data))); got != c.want {
			t.Errorf("%q %q: %q", c.name, c.data, got)
		}
	}
	if got := string(AppendComment([]byte("x"), "keep\nalive")); got != "x: keep\n: alive\n\n" {
		t.Errorf("comment %q", got)
	}
	var out bytes.Buffer
	ev := Event{Raw: []byte("data: a\n\n")}
	if n, err := ev.WriteTo(&out); n != 9 || err != nil || out.String() != "data: a\n\n" {
		t.Errorf("%d %v %q", n, err, out.String())
	}
}
