package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/seam"
	"omniroute/internal/dialect/sse"
)

var resumePieces = []string{"One ", "\"two\" ", "thr\u00e9\u00e9 ", "\U0001F600 ", "five/", "six\n", "seven."}

// asked is a small request in a dialect.
func resumeAsked(t testing.TB, name string) *dialect.Request {
	t.Helper()
	path, body := "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
	switch name {
	case "anthropic":
		path, body = "/v1/messages", `{"model":"m","stream":true,"max_tokens":1000,"messages":[{"role":"user","content":"hi"}]}`
	case "responses":
		path, body = "/v1/responses", `{"model":"m","stream":true,"input":"hi"}`
	case "gemini":
		path, body = "/v1beta/models/m:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	}
	asked, err := Dialect(name).ReadRequest(path, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

func eventsOf(t testing.TB, stream []byte) (list []*sse.Event) {
	t.Helper()
	r := sse.NewReader(bytes.NewReader(stream))
	for {
		ev, err := r.Next()
		if err != nil {
			return list
		}
		list = append(list, &sse.Event{Raw: bytes.Clone(ev.Raw), Name: bytes.Clone(ev.Name), Data: bytes.Clone(ev.Data), HasData: ev.HasData, Comment: ev.Comment})
	}
}

// upstreamStream is an answer as an upstream of a dialect streams it.
func upstreamStream(t testing.TB, c neutral.Codec, id string, thought bool, pieces []string) []*sse.Event {
	t.Helper()
	w := c.NewEventWriter(&neutral.Context{Request: &neutral.Request{IncludeUsage: true}, Model: "m-" + id, Now: time.Unix(1_700_000_000, 0), ID: id})
	var out []byte
	say := func(e neutral.Event) { out = w.Write(out, &e) }
	say(neutral.Event{Kind: neutral.EventStart, ID: "answer_" + id, Model: "m-" + id})
	say(neutral.Event{Kind: neutral.EventUsage, Usage: dialect.Usage{Known: true, Input: 10, Output: 1}})
	if thought {
		say(neutral.Event{Kind: neutral.EventReasoning, Text: "Hm, " + id + "."})
	}
	for _, p := range pieces {
		say(neutral.Event{Kind: neutral.EventText, Text: p})
	}
	say(neutral.Event{Kind: neutral.EventUsage, Usage: dialect.Usage{Known: true, Input: 10, Output: 7}})
	say(neutral.Event{Kind: neutral.EventFinish, Ending: neutral.Ending{Finish: dialect.FinishLength}})
	return eventsOf(t, w.End(out))
}

// TestResumeEverywhere cuts an answer behind each of its events and has it finished by an
// upstream of any dialect, for clients of any dialect, passing through or translated, said again
// or gone on with. The client's stream is one valid answer then.
func TestResumeEverywhere(t *testing.T) {
	t.Parallel()
	text := strings.Join(resumePieces, "")
	for _, client := range codecs {
		for _, first := range codecs {
			for _, second := range codecs {
				for _, thought := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s by %s then %s, thought %v", client.Name(), first.Name(), second.Name(), thought), func(t *testing.T) {
						t.Parallel()
						asked := resumeAsked(t, client.Name())
						source, err := Read(client, asked)
						if err != nil {
							t.Fatal(err)
						}
						begun := upstreamStream(t, first, "one", thought, resumePieces)
						resumed := 0
						for cut := range begun {
							for _, again := range []bool{false, true} {
								to := func(c neutral.Codec) *Translation {
									if c == client {
										return source.Same(Options{Model: "m", Now: time.Unix(1_700_000_000, 0), ID: "req"})
									}
									made, err := source.For(c, Options{Model: "m", Now: time.Unix(1_700_000_000, 0), ID: "req"})
									if err != nil {
										t.Fatal(err)
									}
									return made
								}
								var out []byte
								var writer neutral.EventWriter
								follower := NewFollower(client)
								st := first.NewStream(asked)
								if first == client {
									for _, ev := range begun[:cut] {
										st.Observe(ev)
										out = append(out, ev.Raw...)
										follower.Passed(ev)
									}
								} else {
									stream := to(first).Stream().FollowedBy(follower)
									for _, ev := range begun[:cut] {
										st.Observe(ev)
										out = append(out, stream.Next(ev)...)
									}
									writer = stream.Writer()
								}
								if follower.Lost() != "" {
									continue
								}
								sent := follower.Text()
								if !strings.HasPrefix(text, sent) {
									t.Fatalf("cut %d: the client has %q", cut, sent)
								}
								goOn := seam.Restarted(sent)
								pieces := resumePieces
								if !again {
									goOn = seam.Continued(sent)
									pieces = []string{text[len(seam.Prefix(sent)):]}
								}
								join := seam.NewJoin(goOn, st.Answer().Usage)
								tr := to(second)
								if writer == nil {
									writer = follower.Writer(tr.Context())
								}
								stream := tr.Resume(writer, join)
								for _, ev := range upstreamStream(t, second, "two", thought, pieces) {
									out = append(out, stream.Next(ev)...)
								}
								if join.State() == seam.Broken && !again {
									continue // the piece goes on with a letter, or with nothing
								}
								if join.State() != seam.Joined {
									t.Fatalf("cut %d, again %v: state %v", cut, again, join.State())
								}
								out = append(out, stream.End()...)
								resumed++
								checkOneAnswer(t, client, asked, out, text, 17)
							}
						}
						if resumed < 6 {
							t.Errorf("only %d cuts were resumed", resumed)
						}
					})
				}
			}
		}
	}
}

// checkOneAnswer holds a client's stream against what one answer looks like.
func checkOneAnswer(t *testing.T, c neutral.Codec, asked *dialect.Request, stream []byte, text string, least int64) {
	t.Helper()
	st, reader := c.NewStream(asked), c.NewEventReader(&neutral.Context{Request: &neutral.Request{}})
	var said strings.Builder
	var end dialect.Finish
	numbers, ids := int64(0), map[string]bool{}
	for i, ev := range eventsOf(t, stream) {
		o := st.Observe(ev)
		if o.Skip || o.Malformed || o.Error {
			t.Fatalf("event %d %s: %+v\n%s", i, ev.Data, o, stream)
		}
		for _, e := range reader.Read(ev, nil) {
			switch e.Kind {
			case neutral.EventText:
				said.WriteString(e.Text)
			case neutral.EventFinish:
				end = e.Finish
			case neutral.EventStart:
				ids[e.ID+" "+e.Model] = true
			}
		}
		var n struct {
			Number *int64 `json:"sequence_number"`
			Index  *int64
			Type   string
		}
		if json.Unmarshal(ev.Data, &n) == nil && n.Number != nil {
			if *n.Number != numbers {
				t.Fatalf("event %d has the number %d, want %d\n%s", i, *n.Number, numbers, stream)
			}
			numbers++
		}
	}
	a := st.Answer()
	if said.String() != text || !a.Complete || end != dialect.FinishLength || len(ids) != 1 {
		t.Fatalf("%q, complete %v, finish %v, names %v\n%s", said.String(), a.Complete, end, ids, stream)
	}
	if a.Usage.Input < 10 || a.Usage.Output < 7 || a.Usage.Input+a.Usage.Output < least {
		t.Fatalf("usage %+v\n%s", a.Usage, stream)
	}
	if _, ok := c.(dialect.Terminator); ok && !a.Terminated {
		t.Fatalf("no terminator\n%s", stream)
	}
	if bytes.Contains(stream, []byte("answer_two")) || bytes.Contains(stream, []byte("m-two")) || bytes.Contains(stream, []byte("Hm, two")) {
		t.Fatalf("the client sees who went on\n%s", stream)
	}
	if c.Name() == "openai" && bytes.Count(stream, []byte(`"role":"assistant"`)) != 1 {
		t.Fatalf("the role came twice\n%s", stream)
	}
}

// spelled is a text as a JSON string: plain, or with an escape wherever one is possible.
func spelled(text string, escapes bool) string {
	if !escapes {
		return string(dialect.AppendString(nil, text))
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '/':
			b.WriteString(`\/`)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04X`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String() + `"`
}

// FuzzResume has a text streamed twice in other pieces and other escapes, cut in between. The
// client has the text then, byte for byte, in every dialect.
func FuzzResume(f *testing.F) {
	f.Add("gr\u00fcn / \U0001F600 \"q\" \\ end", uint8(4), uint8(3), uint8(1), true, uint8(0))
	f.Add("one two three four", uint8(9), uint8(2), uint8(5), false, uint8(1))
	f.Fuzz(func(t *testing.T, text string, cut, size1, size2 uint8, escapes bool, which uint8) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) || text == "" || len(text) > 4000 {
			t.Skip()
		}
		client := codecs[int(which)%len(codecs)]
		chunks := func(id string, size int, escapes bool) (out []*sse.Event) {
			var b strings.Builder
			runes := []rune(text)
			for len(runes) > 0 {
				n := min(1+size%7, len(runes))
				fmt.Fprintf(&b, `data: {"id":%q,"model":"m","choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", id, spelled(string(runes[:n]), escapes))
				runes = runes[n:]
			}
			b.WriteString(`data: {"id":"` + id + `","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":10,"completion_tokens":7}}` + "\n\ndata: [DONE]\n\n")
			return eventsOf(t, []byte(b.String()))
		}
		asked := resumeAsked(t, client.Name())
		source, err := Read(client, asked)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Model: "m", Now: time.Unix(1_700_000_000, 0), ID: "req"}
		tr := source.Same(o)
		if client.Name() != "openai" {
			if tr, err = source.For(codecs[0], o); err != nil {
				t.Fatal(err)
			}
		}
		follower := NewFollower(client)
		first, second := chunks("one", int(size1), escapes), chunks("two", int(size2), !escapes)
		var out []byte
		var writer neutral.EventWriter
		stream := tr.Stream().FollowedBy(follower)
		for _, ev := range first[:int(cut)%(len(first)-2)] {
			if client.Name() == "openai" {
				out = append(out, ev.Raw...)
				follower.Passed(ev)
			} else {
				out = append(out, stream.Next(ev)...)
				writer = stream.Writer()
			}
		}
		if follower.Lost() != "" {
			return
		}
		if writer == nil {
			writer = follower.Writer(tr.Context())
		}
		join := seam.NewJoin(seam.Restarted(follower.Text()), dialect.Usage{})
		again := tr.Again().Resume(writer, join)
		for _, ev := range second {
			out = append(out, again.Next(ev)...)
		}
		if join.State() != seam.Joined {
			t.Fatalf("the text does not fit to its own beginning %q", follower.Text())
		}
		checkText(t, client, append(out, again.End()...), text)
	})
}

func checkText(t *testing.T, c neutral.Codec, stream []byte, text string) {
	t.Helper()
	reader := c.NewEventReader(&neutral.Context{Request: &neutral.Request{}})
	var said strings.Builder
	for _, ev := range eventsOf(t, stream) {
		for _, e := range reader.Read(ev, nil) {
			if e.Kind == neutral.EventText {
				said.WriteString(e.Text)
			}
		}
	}
	if said.String() != text {
		t.Fatalf("%q instead of %q", said.String(), text)
	}
}

// FuzzFollow has a client's stream of anything followed, and gone on with.
func FuzzFollow(f *testing.F) {
	for which, c := range codecs {
		for _, ev := range upstreamStream(f, c, "one", true, resumePieces) {
			f.Add(uint8(which), ev.Data, ev.Data)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, a, b []byte) {
		c := codecs[int(which)%len(codecs)]
		follower := NewFollower(c)
		for _, data := range [][]byte{a, b, a} {
			follower.Passed(&sse.Event{Data: data, HasData: true})
		}
		if follower.Lost() != "" {
			if follower.Text() != "" {
				t.Fatal("a text is kept that nobody needs")
			}
			return
		}
		w := follower.Writer(&neutral.Context{Request: &neutral.Request{}, Model: "m", ID: "req"})
		out := w.Write(nil, &neutral.Event{Kind: neutral.EventText, Text: "more"})
		out = w.End(out)
		for _, ev := range eventsOf(t, out) {
			if d := bytes.TrimSpace(ev.Data); string(d) != "[DONE]" && !json.Valid(d) {
				t.Fatalf("%s", d)
			}
		}
	})
}
