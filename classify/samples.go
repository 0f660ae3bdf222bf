package classify

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"omniroute/resilience"
)

// Sample is an answer that no rule knew, with secrets removed.
type Sample struct {
	At       time.Time `json:"at"` // when it was last seen
	Provider string    `json:"provider"`
	Dialect  string    `json:"dialect,omitempty"`
	Model    string    `json:"model,omitempty"`
	Phase    string    `json:"phase"`
	Status   int       `json:"status"`
	Type     string    `json:"content_type,omitempty"`
	// Body is its beginning, at most 2 KiB.
	Body string `json:"body"`
	// Rule is the default that decided, Scope and Kind what it said.
	Rule  string `json:"rule"`
	Scope string `json:"scope"`
	Kind  string `json:"kind"`
	// Count is how often an answer of this shape came while the sample was kept.
	Count int `json:"count"`
}

const maxSampleBody = 2 << 10

// Samples counts answers that fell to a default rule and keeps the latest of each shape, so
// that payloads which no rule knows are noticed. It is safe for concurrent use.
type Samples struct {
	mu     sync.Mutex
	size   int
	ring   []Sample // oldest first
	shapes []uint64 // of the same index
	counts map[string]uint64
}

// NewSamples returns a ring of that many samples; 0 means 64.
func NewSamples(size int) *Samples {
	if size <= 0 {
		size = 64
	}
	return &Samples{size: size, counts: map[string]uint64{}}
}

// Add takes note of a verdict that came from a default rule, and ignores every other. It reports
// whether it was one.
func (s *Samples) Add(in Input, v resilience.Verdict) bool {
	if !IsDefault(v.Rule) {
		return false
	}
	body := plainBody(in.Header, in.Body)
	shape := shapeOf(in.Provider, v.Rule, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[v.Rule]++
	if i := slices.Index(s.shapes, shape); i >= 0 {
		known := s.ring[i]
		known.Count++
		known.At = in.Now
		s.ring = append(append(s.ring[:i], s.ring[i+1:]...), known)
		s.shapes = append(append(s.shapes[:i], s.shapes[i+1:]...), shape)
		return true
	}
	if len(s.ring) == s.size {
		s.ring = append(s.ring[:0], s.ring[1:]...)
		s.shapes = append(s.shapes[:0], s.shapes[1:]...)
	}
	s.ring = append(s.ring, Sample{At: in.Now, Provider: in.Provider, Dialect: in.Dialect, Model: in.Model, Phase: in.Phase.String(), Status: in.Status,
		Type: clip(in.Header.Get("Content-Type"), 80), Body: sampleBody(body), Rule: v.Rule, Scope: v.Scope.String(), Kind: v.Kind.String(), Count: 1})
	s.shapes = append(s.shapes, shape)
	return true
}

// List returns the samples, newest first.
func (s *Samples) List() []Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Sample, 0, len(s.ring))
	for i := len(s.ring) - 1; i >= 0; i-- {
		out = append(out, s.ring[i])
	}
	return out
}

// Counts returns how many answers fell to each default rule since the start.
func (s *Samples) Counts() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// sampleBody is the beginning of a body as it may be shown: readable, without secrets, and
// without the fields that repeat the request.
func sampleBody(b []byte) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), 2*maxSampleBody)]), "\uFFFD")
	for _, key := range [...]string{"echo", "input", "prompt", "messages", "failed_generation", "flagged_input", "content"} {
		s = blank(s, `"`+key+`"`)
	}
	s = Redact(s)
	if len(s) > maxSampleBody {
		s = s[:maxSampleBody]
		for len(s) > 0 && !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return s
}

// blank empties the values of a JSON key, whatever their kind.
func blank(s, key string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, key)
		if i < 0 {
			break
		}
		v := i + len(key)
		rest := strings.TrimLeft(s[v:], " \t\r\n")
		if !strings.HasPrefix(rest, ":") {
			out.WriteString(s[:v])
			s = s[v:]
			continue
		}
		value := strings.TrimLeft(rest[1:], " \t\r\n")
		out.WriteString(s[:v])
		out.WriteString(`:"…"`)
		if _, after, ok := parseJSON(value); ok {
			s = after
		} else {
			s = ""
		}
	}
	out.WriteString(s)
	return out.String()
}

// shapeOf is what two answers of one shape have in common: provider, rule and the beginning of
// the body without its digits.
func shapeOf(provider, rule string, body []byte) uint64 {
	h := fnv.New64a()
	h.Write([]byte(provider + "\x00" + rule + "\x00"))
	b := make([]byte, 0, 512)
	for _, c := range body {
		if len(b) == cap(b) {
			break
		}
		if c < '0' || c > '9' {
			b = append(b, c)
		}
	}
	h.Write(b)
	return h.Sum64()
}
