package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// tally is what a client has at the end of an answer, however it came.
type tally struct {
	ID, Model, Text, Thought, Refusal string
	Seals                             []neutral.Seal
	Calls                             []neutral.Call
	Finish                            dialect.Finish
	Usage                             dialect.Usage
}

func tallyEvents(list []neutral.Event) tally {
	var out tally
	for i := range list {
		e := &list[i]
		switch e.Kind {
		case neutral.EventStart:
			out.ID, out.Model = e.ID, e.Model
		case neutral.EventText:
			out.Text += e.Text
		case neutral.EventReasoning:
			out.Thought += e.Text
		case neutral.EventRefusal:
			out.Refusal += e.Text
		case neutral.EventSeal:
			out.Seals = append(out.Seals, e.Seal)
		case neutral.EventCall:
			for len(out.Calls) <= e.Index {
				out.Calls = append(out.Calls, neutral.Call{})
			}
			out.Calls[e.Index].ID, out.Calls[e.Index].Name, out.Calls[e.Index].Custom = e.ID, e.Name, e.Custom
		case neutral.EventArguments:
			out.Calls[e.Index].Arguments += e.Text
		case neutral.EventFinish:
			out.Finish = e.Finish
		case neutral.EventUsage:
			out.Usage = e.Usage
		}
	}
	return out.settled()
}

// settled: no arguments are {}.
func (a tally) settled() tally {
	for i := range a.Calls {
		if a.Calls[i].Arguments == "" {
			a.Calls[i].Arguments = "{}"
		}
	}
	return a
}

func tallyAnswer(in *neutral.Answer) tally {
	out := tally{ID: in.ID, Model: in.Model, Finish: in.Finish, Usage: in.Usage}
	for _, p := range in.Parts {
		switch p.Kind {
		case neutral.PartText:
			out.Text += p.Text
		case neutral.PartReasoning:
			out.Thought += p.Text
			if p.Seal.Value != "" {
				out.Seals = append(out.Seals, p.Seal)
			}
		case neutral.PartRefusal:
			out.Refusal += p.Text
		case neutral.PartCall:
			out.Calls = append(out.Calls, p.Call)
		}
	}
	return out.settled()
}

// kept returns what a client of a dialect gets to see of an answer.
func kept(d string, a tally) tally {
	if d == "anthropic" && a.Refusal != "" && a.Finish == dialect.FinishStop { // a refusal is a reason to stop
		a.Finish = dialect.FinishFilter
	}
	if d != "openai" && d != "responses" { // no word for a refusal
		a.Text, a.Refusal = a.Text+a.Refusal, ""
	}
	for i := range a.Calls {
		a.Calls[i].Custom = a.Calls[i].Custom && (d == "openai" || d == "responses")
	}
	var seals []neutral.Seal
	for _, s := range a.Seals {
		switch d {
		case "openai": // only Google's has a place, with a call
			if s.Origin != "gemini" {
				continue
			}
		case "anthropic":
			s.Redacted = s.Redacted && s.Origin != d
		}
		seals = append(seals, s)
	}
	a.Seals = seals
	return a
}

var alphabet = []string{"Hi", " there", "é", "日本", "\n", "\"q\"", "<&>", "\u2028", "😀", "data: x\n\n"}

// drawEvents makes the events of a whole answer: a thought with its seal, text or a refusal, and
// calls, whose fragments may be interleaved.
func drawEvents(t *rapid.T) []neutral.Event {
	text := func() string { return rapid.SampledFrom(alphabet).Draw(t, "text") }
	events := []neutral.Event{{Kind: neutral.EventStart, ID: "a-1", Model: "m-1"}}
	if rapid.Bool().Draw(t, "thought") {
		for range rapid.IntRange(0, 3).Draw(t, "thoughts") {
			events = append(events, neutral.Event{Kind: neutral.EventReasoning, Text: text()})
		}
		if rapid.Bool().Draw(t, "seal") {
			events = append(events, neutral.Event{Kind: neutral.EventSeal, Seal: neutral.Seal{Origin: "gemini", Value: "c2lnbg=="}})
		}
	}
	kind := rapid.SampledFrom([]neutral.EventKind{neutral.EventText, neutral.EventText, neutral.EventRefusal}).Draw(t, "kind")
	sealed := events[len(events)-1].Kind == neutral.EventSeal
	if !sealed {
		for range rapid.IntRange(0, 4).Draw(t, "texts") {
			events = append(events, neutral.Event{Kind: kind, Text: text()})
		}
	}
	finish := neutral.Event{Kind: neutral.EventFinish}
	finish.Finish = rapid.SampledFrom([]dialect.Finish{dialect.FinishStop, dialect.FinishLength, dialect.FinishFilter}).Draw(t, "finish")
	n := rapid.IntRange(0, 3).Draw(t, "calls")
	if sealed {
		n = max(n, 1)
	}
	pieces := make([][]string, n)
	for i := range n {
		call := neutral.Event{Kind: neutral.EventCall, Index: i, ID: fmt.Sprintf("call_%d", i), Name: "f"}
		args := rapid.SampledFrom([]string{"", `{}`, `{"a":"}{"}`, `{"big":12345678901234567890,"b":[1,2]}`}).Draw(t, "args")
		if call.Custom = rapid.Bool().Draw(t, "custom"); call.Custom {
			args = neutral.FreeArguments(rapid.SampledFrom(texts).Draw(t, "input"))
		}
		events = append(events, call)
		for args != "" {
			k := rapid.IntRange(1, len(args)).Draw(t, "cut")
			for k < len(args) && !utf8.RuneStart(args[k]) {
				k++
			}
			pieces[i] = append(pieces[i], args[:k])
			args = args[k:]
		}
		if !rapid.Bool().Draw(t, "interleaved") { // all of it before the next one begins
			for _, p := range pieces[i] {
				events = append(events, neutral.Event{Kind: neutral.EventArguments, Index: i, Text: p})
			}
			pieces[i] = nil
			events = append(events, neutral.Event{Kind: neutral.EventCallEnd, Index: i})
		}
		finish.Finish = dialect.FinishToolCalls
	}
	for left := true; left; {
		left = false
		for i := range pieces {
			if len(pieces[i]) > 0 {
				events = append(events, neutral.Event{Kind: neutral.EventArguments, Index: i, Text: pieces[i][0]})
				pieces[i], left = pieces[i][1:], true
			}
		}
	}
	usage := neutral.Event{Kind: neutral.EventUsage, Usage: dialect.Usage{Known: true, Input: 100, Output: 40, CacheRead: 30, Reasoning: 10}}
	if rapid.Bool().Draw(t, "usageFirst") {
		return append(events, usage, finish)
	}
	return append(events, finish, usage)
}

func contextFor() *neutral.Context {
	return &neutral.Context{Request: &neutral.Request{IncludeUsage: true}, Model: "m-0", Now: time.Unix(1700000000, 0), ID: "req.1"}
}

// chopped gives out a text in pieces that rapid chooses.
type chopped struct {
	t    *rapid.T
	data []byte
}

func (c *chopped) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := min(len(p), len(c.data), rapid.IntRange(1, 300).Draw(c.t, "read"))
	copy(p, c.data[:n])
	c.data = c.data[n:]
	return n, nil
}

// TestStreamsSurvive: the events of any answer, written to a dialect, cut into bytes anywhere and
// read back, make the same answer but for what kept lists; the dialect's judge takes it for
// whole at its end and nowhere before.
func TestStreamsSurvive(t *testing.T) {
	t.Parallel()
	for _, c := range codecs {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				events := drawEvents(t)
				w := c.NewEventWriter(contextFor())
				var out []byte
				for i := range events {
					out = w.Write(out, &events[i])
				}
				if a := judged(c, out); a.Complete || a.Terminated || a.Error {
					t.Fatalf("whole before its end: %+v\n%s", a, out)
				}
				out = w.End(out)
				a := judged(c, out)
				if !a.Complete || a.Dropped > 0 {
					t.Fatalf("not whole: %+v\n%s", a, out)
				}
				want := kept(c.Name(), tallyEvents(events))
				if said := want.Text + want.Thought + want.Refusal; a.Content != (said != "" || len(want.Calls) > 0) || a.ToolCall != (len(want.Calls) > 0) {
					t.Fatalf("judged as %+v\n%s", a, out)
				}
				if diff := cmp.Diff(want.Usage, a.Usage); diff != "" {
					t.Fatalf("usage as judged:\n%s", diff)
				}
				r, reader := sse.NewReader(&chopped{t, out}), c.NewEventReader(contextFor())
				var back []neutral.Event
				for {
					ev, err := r.Next()
					if err != nil {
						break
					}
					back = reader.Read(ev, back)
				}
				got := tallyEvents(reader.End(back))
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(tally{}, "Seals")); diff != "" {
					t.Fatalf("%s\n%s", out, diff)
				}
				sameSeals(t, c.Name(), want.Seals, got.Seals)
			})
		})
	}
}

// sameSeals compares seals; a thought without one has a stand-in.
func sameSeals(t *rapid.T, d string, want, got []neutral.Seal) {
	t.Helper()
	var real []neutral.Seal
	for _, s := range got {
		if s.Origin != neutral.Unsealed.Origin {
			if d == "responses" && s.Origin == d {
				_, s.Value, _ = strings.Cut(s.Value, "|")
			}
			real = append(real, s)
		}
	}
	if diff := cmp.Diff(want, real, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("seals:\n%s", diff)
	}
}

func judged(d dialect.Dialect, stream []byte) dialect.Answer {
	r, st := sse.NewReader(bytes.NewReader(stream)), d.NewStream(&dialect.Request{Stream: true})
	for {
		ev, err := r.Next()
		if err != nil {
			return st.Answer()
		}
		st.Observe(ev)
	}
}

// TestAnswersSurvive is TestStreamsSurvive for complete bodies.
func TestAnswersSurvive(t *testing.T) {
	t.Parallel()
	for _, c := range codecs {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				events := drawEvents(t)
				given := answerOf(events)
				body := c.WriteAnswer(contextFor(), given)
				if !json.Valid(body) {
					t.Fatalf("%s", body)
				}
				if a := c.Inspect(&dialect.Request{}, body); !a.Complete {
					t.Fatalf("judged as %+v: %s", a, body)
				}
				back, ok := c.ReadAnswer(contextFor(), body)
				if !ok {
					t.Fatalf("not read: %s", body)
				}
				want, got := kept(c.Name(), tallyAnswer(given)), tallyAnswer(back)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(tally{}, "Seals")); diff != "" {
					t.Fatalf("%s\n%s", body, diff)
				}
				sameSeals(t, c.Name(), want.Seals, got.Seals)
			})
		})
	}
}

// answerOf collects events into an answer.
func answerOf(events []neutral.Event) *neutral.Answer {
	a := tallyEvents(events)
	out := &neutral.Answer{ID: a.ID, Model: a.Model, Usage: a.Usage}
	out.Finish = a.Finish
	thought := neutral.Part{Kind: neutral.PartReasoning, Text: a.Thought}
	if len(a.Seals) > 0 {
		thought.Seal = a.Seals[0]
	}
	if thought.Text != "" || thought.Seal.Value != "" {
		out.Parts = append(out.Parts, thought)
	}
	out.Parts = append(out.Parts, neutral.Texts(a.Text)...)
	if a.Refusal != "" {
		out.Parts = append(out.Parts, neutral.Part{Kind: neutral.PartRefusal, Text: a.Refusal})
	}
	for _, c := range a.Calls {
		out.Parts = append(out.Parts, neutral.Part{Kind: neutral.PartCall, Call: c})
	}
	return out
}

// TestFailuresShow: a stream that is broken off anywhere ends with an error that its dialect's
// judge and reader of errors find, with no terminator and no call closed that was not whole.
func TestFailuresShow(t *testing.T) {
	t.Parallel()
	for _, c := range codecs {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				events := drawEvents(t)
				events = events[:rapid.IntRange(1, len(events)).Draw(t, "cut")]
				w := c.NewEventWriter(contextFor())
				var out []byte
				for i := range events {
					out = w.Write(out, &events[i])
				}
				out = w.Fail(out, &dialect.ErrorReport{Code: dialect.CodeUpstreamError, Message: "It broke off."})
				a := judged(c, out)
				if !a.Error || a.Complete || a.Terminated {
					t.Fatalf("judged as %+v\n%s", a, out)
				}
				var last dialect.Observation
				r, st := sse.NewReader(bytes.NewReader(out)), c.NewStream(&dialect.Request{Stream: true})
				for ev, err := r.Next(); err == nil; ev, err = r.Next() {
					if o := st.Observe(ev); o.Error {
						last = o
						last.Envelope = bytes.Clone(o.Envelope)
					}
				}
				if e, ok := c.ReadError(last.Envelope); !ok || e.Message != "It broke off." {
					t.Fatalf("error read as %+v, %v from %s", e, ok, last.Envelope)
				}
			})
		})
	}
}
