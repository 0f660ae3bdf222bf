package lab

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (a *answer) usage() *usage {
	return &usage{a.prompt, len(a.pieces), a.prompt + len(a.pieces)}
}

type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in streams only
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type reply struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type choice struct {
	Index    int     `json:"index"`
	Message  *reply  `json:"message,omitempty"`
	Delta    any     `json:"delta,omitempty"`
	Text     *string `json:"text,omitempty"`
	Logprobs *string `json:"logprobs"`
	Finish   *string `json:"finish_reason"`
}

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// id names the answer.
func (x *exchange) id() string {
	if x.endpoint == completions {
		return fmt.Sprintf("cmpl-%s-%s-%d", x.p.opt.Name, x.connection, x.turn)
	}
	return fmt.Sprintf("chatcmpl-%s-%s-%d", x.p.opt.Name, x.connection, x.turn)
}

// latency is the time that a plain answer of so many pieces takes.
func (x *exchange) latency(pieces int) time.Duration {
	d := x.p.opt.Latency.FirstContent.draw(x.rnd)
	for range pieces - 1 {
		d += x.gap()
	}
	return d
}

func (x *exchange) gap() time.Duration {
	if x.plan.gap > 0 {
		return x.plan.gap
	}
	return x.p.opt.Latency.Gap.draw(x.rnd)
}

// plain answers in one piece.
func (x *exchange) plain() {
	a := x.answer()
	c := completion{ID: x.id(), Object: "chat.completion", Created: x.now.Unix(), Model: x.model, Usage: a.usage()}
	ch := choice{Finish: &a.finish}
	content := a.text()
	switch {
	case x.endpoint == completions:
		c.Object = "text_completion"
		ch.Text = &content
	case a.tool != "":
		ch.Message = &reply{Role: "assistant", ToolCalls: []toolCall{{
			ID: x.toolID(), Type: "function", Function: functionCall{a.tool, content},
		}}}
	default:
		ch.Message = &reply{Role: "assistant", Content: &content}
	}
	if x.plan.noFinish {
		ch.Finish = nil
	}
	c.Choices = []choice{ch}
	if x.plan.noChoices {
		c.Choices = []choice{}
	}
	if x.plan.noChoices || x.plan.noContent {
		c.Usage = nil
	}
	x.sendJSON(marshal(c), x.latency(len(a.pieces)))
}

// create answers a request of a kind that the provider does not know.
func (x *exchange) create() {
	x.sendJSON(marshal(map[string]any{
		"id":     fmt.Sprintf("obj-%s-%s-%d", x.p.opt.Name, x.connection, x.turn),
		"object": "lab.object", "created": x.now.Unix(), "model": x.model, "path": x.r.URL.Path,
	}), x.latency(0))
}

func (x *exchange) toolID() string { return fmt.Sprintf("call_%s_%d", x.p.opt.Name, x.turn) }

// sendJSON sends a plain answer as the plan bends it.
func (x *exchange) sendJSON(body []byte, latency time.Duration) {
	p := &x.plan
	switch {
	case p.end == endError:
		body = p.err.envelope()
	case p.badEvent > 0:
		body = body[:len(body)/2]
	}
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	if p.gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(body) // into memory
		z.Close()
		body = b.Bytes()
		h.Set("Content-Encoding", "gzip")
	}
	if !x.wait(p.headers) {
		return
	}
	if p.slow {
		x.w.WriteHeader(http.StatusOK)
		x.flush()
		latency = p.firstContent
	}
	if !x.wait(latency) {
		return
	}
	if p.end != endCut && p.end != endStall {
		if !p.slow {
			h.Set("Content-Length", strconv.Itoa(len(body)))
		}
		x.w.Write(body)
		return
	}

	switch {
	case p.slow: // the headers are gone
	case p.end == endCut && p.style == CutUnframed:
		h.Set("Transfer-Encoding", "identity")
	case p.end == endCut && p.style == CutQuiet:
	default:
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.w.Write(body[:len(body)/2])
	x.flush()
	x.finishEarly()
}

// flush sends what was written. The client may be gone; the next wait will notice.
func (x *exchange) flush() { http.NewResponseController(x.w).Flush() }

// finishEarly ends an answer by a cut or a stall.
func (x *exchange) finishEarly() {
	switch {
	case x.plan.end == endStall:
		<-x.r.Context().Done()
	case x.plan.style == CutReset:
		x.hangUp(true)
	case x.plan.style == CutFIN:
		x.hangUp(false)
	}
}
