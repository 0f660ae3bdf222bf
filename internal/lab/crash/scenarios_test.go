package crash_test

import (
	"net/http"
	"strings"
	"time"

	"omniroute/internal/lab"
)

// scenario is one way to fail.
type scenario struct {
	id, what string
	// streamOnly: there is no such thing for a whole answer.
	streamOnly bool
	// quick scenarios are run on sockets too.
	quick bool
	// handler replaces the first provider.
	handler http.Handler
	// alike: both providers answer in the same words.
	alike bool
	play  func(*run)
	// The least that is expected, with the defaults and with the options; pass where it says nothing.
	defaults, options want
}

// want is what is expected of a stream and of a whole answer.
type want struct {
	stream, whole grade
	why           string
}

const unrecovered = "recover is off, since a second call costs money and a model that goes on is not the one that began"

func scenarios() []scenario {
	return []scenario{
		{id: "S01", what: "429 with Retry-After 2, once", play: func(r *run) {
			r.first().SetFault(lab.First(1, lab.RateLimited(lab.RetryAfter(2*time.Second))))
			a := r.served()
			calls := r.first().Calls()
			r.must(len(calls) < 2 || calls[1].At.Sub(calls[0].At) >= 1800*time.Millisecond, "asked again too early")
			r.partly(by(a) == "first", "moved on instead of waiting 2 s")
		}},
		{id: "S02", what: "429 for ever, without a header", quick: true, play: func(r *run) {
			r.first().SetFault(lab.RateLimited(lab.Hint{}))
			a := r.served()
			early := 0
			for _, c := range r.first().Calls() {
				if c.At.Sub(r.first().Calls()[0].At) <= 3*time.Second {
					early++
				}
			}
			r.must(early <= 4 && r.first().Total() <= 6, "%d attempts in 3 s, %d in all", early, r.first().Total())
			r.must(by(a) == "second", "served by %q", by(a))
		}},
		{id: "S03", what: "500 once", quick: true, play: func(r *run) {
			r.first().SetFault(lab.First(1, lab.ServerError()))
			a := r.served()
			r.partly(by(a) == "first", "moved on at once instead of asking again")
		}, defaults: want{part, part, "patience_for: hinted, since the fallback answers sooner than a failing provider mends"}},
		{id: "S04", what: "503 for ever", quick: true, play: func(r *run) {
			r.first().SetFault(lab.Unavailable(lab.Hint{}))
			a := r.served()
			r.must(r.first().Total() <= 6, "%d attempts", r.first().Total())
			r.must(by(a) == "second", "served by %q", by(a))
		}},
		{id: "S05", what: "reset before headers", quick: true, play: func(r *run) {
			r.first().SetFault(lab.ResetBeforeHeaders())
			a := r.served()
			r.must(r.first().Total() <= 6, "%d attempts", r.first().Total())
			r.must(by(a) == "second", "served by %q", by(a))
		}},
		{id: "S06", what: "no answer for 120 s", play: func(r *run) {
			r.first().SetFault(lab.SlowHeaders(120 * time.Second))
			r.took()
			r.served()
			took := r.took()
			r.partly(took <= 100*time.Second, "took %v", took.Round(time.Second))
			r.must(r.first().Total() == 1, "the silent route was tried %d times", r.first().Total())
		}, defaults: want{pass, part, "answer_timeout: 5m, since whole answers of slow models take minutes and show no sign of life before their end"}},
		{id: "S07", what: "headers at once, first token after 20 s", play: func(r *run) {
			r.first().SetFault(lab.SlowFirstContent(20*time.Second, 0))
			r.took()
			r.served()
			took := r.took()
			r.partly(took <= 15*time.Second, "took %v", took.Round(time.Second))
		}, streamOnly: true, defaults: want{part, none, "first_token_timeout: 60s, since models that reason are silent for that long and a shorter one would waste their work; and hedge is off, since a second call costs money"}},
		{id: "S08", what: "cut after 40 of 60 tokens", streamOnly: true, quick: true, play: func(r *run) {
			r.first().SetFault(lab.Cut(40, lab.CutReset))
			a := r.ask()
			r.must(a.Error != "" || a.Text == said("first"), "a short success, or a bad seam: %q", a.Text)
			r.partly(a.Error == "", "an error after the text so far")
		}, defaults: want{part, none, unrecovered}},
		{id: "S09", what: "silent for 30 s after 20 tokens", streamOnly: true, handler: scripted{pauseAfter: 20, pause: 30 * time.Second}, play: func(r *run) {
			r.took()
			r.ask()
			took := r.took()
			r.must(took <= 45*time.Second, "took %v", took.Round(time.Second))
			r.served()
		}},
		{id: "S10", what: "the tenth event is no JSON", streamOnly: true, quick: true, play: func(r *run) {
			r.first().SetFault(lab.BadEvent(10))
			a := r.ask()
			n := len(strings.Fields(a.Text))
			r.must(a.Error != "" || n >= tokens-1, "%d tokens", n)
		}},
		{id: "S11", what: "no [DONE], and the connection stays", streamOnly: true, handler: scripted{open: true}, play: func(r *run) {
			r.took()
			a := r.served()
			took := r.took()
			r.must(took <= 8*time.Second, "took %v", took.Round(time.Second))
			r.must(strings.Contains(a.Body, `"completion_tokens":60`), "no usage")
		}},
		{id: "S12", what: "400: the prompt is too long", quick: true, play: func(r *run) {
			r.first().SetFault(lab.ContextLength())
			a := r.served()
			r.must(r.first().Total() == 1 && by(a) == "second", "%d attempts, served by %q", r.first().Total(), by(a))
		}},
		{id: "S13", what: "400: a content filter", quick: true, play: func(r *run) {
			r.first().SetFault(lab.ContentPolicy())
			r.second().SetFault(lab.ContentPolicy())
			a := r.ask()
			r.must(a.Status == 400 && strings.Contains(a.Body, "rejected by the content policy"), "status %d, %s", a.Status, a.Error)
			r.must(r.first().Total() == 1, "the first was asked %d times", r.first().Total())
			r.partly(r.second().Total() == 0, "another model was asked too")
		}, defaults: want{part, part, "another model may well answer what this one's filter refuses (law R6)"}},
		{id: "S14", what: "cut, and the fallback takes no prefix", streamOnly: true, quick: true, alike: true, play: func(r *run) {
			r.first().SetFault(lab.Sequence(lab.Cut(40, lab.CutFIN), lab.ServerError()))
			r.second().SetFault(lab.NoPrefill())
			a := r.ask()
			r.must(!strings.Contains(a.Body, "prefill"), "the client saw the refusal")
			r.must(a.Error != "" || a.Text == said("word"), "a short success, or a bad seam: %q", a.Text)
			r.partly(a.Error == "", "an error after the text so far")
		}, defaults: want{part, none, unrecovered}},
		{id: "S15", what: "down for 60 s, a request every 4 s", play: func(r *run) {
			r.first().SetScript(lab.Phase{To: 60 * time.Second, Fault: lab.Unavailable(lab.Hint{})})
			start, back := time.Now(), time.Duration(0)
			down := 0
			for range 26 {
				a := r.served()
				at := time.Since(start)
				if by(a) == "first" && back == 0 {
					back = at
				}
				if at < 60*time.Second {
					down = r.first().Total()
				}
				time.Sleep(4 * time.Second)
			}
			r.must(back > 0 && back <= 90*time.Second, "the first was back after %v", back.Round(time.Second))
			r.must(down <= 15, "%d attempts while it was down", down)
			r.partly(down <= 12, "%d attempts while it was down", down)
		}},
		{id: "S16", what: "who answered, and the usage", quick: true, play: func(r *run) {
			r.first().SetFault(lab.ServerError())
			a := r.served()
			r.must(a.Header.Get("X-Omniroute-Model") == "large" && strings.Contains(a.Body, `"model":"large"`), "the answer does not name its model")
			r.must(strings.Contains(a.Body, `"completion_tokens":60`), "no usage")
		}},
	}
}
