package upstream

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Models of the lean provider. Any other model is answered as Fast.
const (
	// Fast answers at once, streams without a pause.
	Fast = "fast"
	// Paced streams a piece of content every PacedGap, as real models do.
	Paced = "paced"
	// Brief is Paced with BriefPieces pieces.
	Brief = "brief"
	// Held streams one piece, and then one every HeldGap until its client leaves.
	Held = "held"
	// Broken answers 500; the time from that to the next call is kept (Lean.Turns).
	Broken = "broken"
)

// The shape of the lean provider's streams.
const (
	Pieces      = 100
	BriefPieces = 3
	PacedGap    = 5 * time.Millisecond
	HeldGap     = time.Second
)

// Lean is a provider that sends the same prepared bytes again and again.
type Lean struct {
	plain []byte
	head  []byte // the role chunk
	piece []byte
	tail  []byte // finish reason, usage, terminator

	mu     sync.Mutex
	broken map[string]time.Time // request id to when its failure went out
	turns  []time.Duration
}

// NewLean returns a lean provider.
func NewLean() *Lean {
	chunk := func(delta, finish string) []byte {
		return []byte(`data: {"id":"chatcmpl-lean","object":"chat.completion.chunk","created":1767225600,"model":"lean-1","system_fingerprint":"fp_1",` +
			`"choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]}` + "\n\n")
	}
	text := bytes.Repeat([]byte("A plain answer of some length. "), 26)
	return &Lean{
		plain: []byte(`{"id":"chatcmpl-lean","object":"chat.completion","created":1767225600,"model":"lean-1","choices":[{"index":0,` +
			`"message":{"role":"assistant","content":"` + string(text) + `"},"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":250,"completion_tokens":180,"total_tokens":430}}`),
		head:  chunk(`{"role":"assistant","content":""}`, "null"),
		piece: chunk(`{"content":" word"}`, "null"),
		tail: append(chunk(`{}`, `"stop"`), `data: {"id":"chatcmpl-lean","object":"chat.completion.chunk","created":1767225600,"model":"lean-1","choices":[],`+
			`"usage":{"prompt_tokens":250,"completion_tokens":100,"total_tokens":350}}`+"\n\ndata: [DONE]\n\n"...),
		broken: map[string]time.Time{},
	}
}

// ServeHTTP answers POST …/chat/completions.
func (l *Lean) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.arrived(r)
	buf := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(buf)
	buf.Reset()
	if _, err := buf.ReadFrom(r.Body); err != nil {
		return // the client has gone
	}
	model, stream := asked(buf.Bytes())
	switch {
	case model == Broken:
		l.fail(w, r)
	case stream:
		l.stream(w, r, model)
	default:
		h := w.Header()
		h["Content-Type"] = []string{"application/json"}
		h["Content-Length"] = []string{strconv.Itoa(len(l.plain))}
		_, _ = w.Write(l.plain)
	}
}

func (l *Lean) stream(w http.ResponseWriter, r *http.Request, model string) {
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	out := http.NewResponseController(w)
	send := func(b []byte) bool {
		_, err := w.Write(b)
		return err == nil && out.Flush() == nil
	}
	n, gap := Pieces, time.Duration(0)
	switch model {
	case Paced:
		gap = PacedGap
	case Brief:
		n, gap = BriefPieces, PacedGap
	case Held:
		n, gap = 1<<30, HeldGap
	}
	if !send(l.head) {
		return
	}
	var tick *time.Ticker
	if gap > 0 {
		tick = time.NewTicker(gap)
		defer tick.Stop()
	}
	for i := range n {
		if tick != nil && i > 0 {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
		if !send(l.piece) {
			return
		}
	}
	_, _ = w.Write(l.tail)
}

// fail answers 500 and remembers when the last byte of it went out.
func (l *Lean) fail(w http.ResponseWriter, r *http.Request) {
	const body = `{"error":{"message":"Something broke on our side.","type":"server_error","code":"internal_error","param":null}}`
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, body)
	l.mu.Lock()
	l.broken[r.Header.Get("X-Request-Id")] = time.Now()
	l.mu.Unlock()
	_ = http.NewResponseController(w).Flush()
}

// arrived takes the time since the same request failed here, if it did.
func (l *Lean) arrived(r *http.Request) {
	now := time.Now()
	id := r.Header.Get("X-Request-Id")
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.broken[id]; ok {
		delete(l.broken, id)
		l.turns = append(l.turns, now.Sub(at))
	}
}

// Turns returns the times from the deciding byte of a failure to the arrival of the next call for
// the same request, and forgets them.
func (l *Lean) Turns() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.turns
	l.turns = nil
	clear(l.broken)
	return t
}

// asked finds the model, and whether a stream is wanted, without parsing the body: the generator
// writes both without spaces, and gateways that write the body anew are read too.
func asked(body []byte) (model string, stream bool) {
	head := body[:min(len(body), 4<<10)]
	if i := bytes.Index(head, []byte(`"model"`)); i >= 0 {
		rest := bytes.TrimLeft(head[i+len(`"model"`):], ": ")
		if len(rest) > 1 && rest[0] == '"' {
			if j := bytes.IndexByte(rest[1:], '"'); j >= 0 {
				model = string(rest[1 : 1+j])
			}
		}
	}
	if i := bytes.Index(body, []byte(`"stream"`)); i >= 0 {
		stream = bytes.HasPrefix(bytes.TrimLeft(body[i+len(`"stream"`):], ": "), []byte("true"))
	}
	return model, stream
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}
