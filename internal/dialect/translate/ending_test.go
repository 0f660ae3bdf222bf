package translate

import (
	"testing"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// TestStopSequenceIsTold: where a dialect has a place for the stop sequence that ended an answer, it is told, in a stream and
// in a whole answer.
func TestStopSequenceIsTold(t *testing.T) {
	t.Parallel()
	c := codecOf("anthropic")
	ending := neutral.Ending{Finish: dialect.FinishStop, Stop: "END"}
	context := func() *neutral.Context {
		return &neutral.Context{Request: &neutral.Request{Model: "m-1"}, Model: "m-1", Now: time.Unix(0, 0), ID: "r"}
	}
	body := c.WriteAnswer(context(), &neutral.Answer{Parts: neutral.Texts("x"), Ending: ending})
	if a, ok := c.ReadAnswer(context(), body); !ok || a.Stop != "END" || a.Native != "stop_sequence" {
		t.Errorf("%s: read as %+v", body, a)
	}
	w := c.NewEventWriter(context())
	stream := w.Write(nil, &neutral.Event{Kind: neutral.EventText, Text: "x"})
	stream = w.End(w.Write(stream, &neutral.Event{Kind: neutral.EventFinish, Ending: ending}))
	got := ""
	r := c.NewEventReader(context())
	for _, ev := range eventsOf(t, stream) {
		for _, e := range r.Read(ev, nil) {
			if e.Kind == neutral.EventFinish {
				got = e.Stop
			}
		}
	}
	if got != "END" {
		t.Errorf("%s: read as %q", stream, got)
	}
}
