package classify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"omniroute/resilience"
)

// maxRaw bounds one raw response: headers and the part of the body that is read.
const maxRaw = maxBody + 64<<10

// ParseResponse reads one raw HTTP response, as curl -i prints it: status line, headers, an empty
// line, body. Interim responses (100, a proxy's 200 before a CONNECT) are skipped. Line ends may
// be bare; a chunked body may be as it was on the wire or already joined. The caller adds
// provider, model and clock.
func ParseResponse(r io.Reader) (Input, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxRaw))
	if err != nil {
		return Input{}, fmt.Errorf("reading the response: %w", err)
	}
	for {
		in, rest, err := parseHead(raw)
		if err != nil {
			return Input{}, err
		}
		if (in.Status < 200 || in.Status == 200) && bytes.HasPrefix(rest, []byte("HTTP/")) {
			raw = rest
			continue
		}
		in.Body = dechunk(in.Header, rest)
		return in, nil
	}
}

func parseHead(raw []byte) (in Input, rest []byte, err error) {
	line, rest, _ := bytes.Cut(raw, []byte("\n"))
	proto, after, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	code, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	status, convErr := strconv.Atoi(code)
	if !strings.HasPrefix(proto, "HTTP/") || convErr != nil || status < 100 || status > 999 {
		return in, nil, fmt.Errorf("the first line is %q; begin with a status line such as \"HTTP/1.1 429 Too Many Requests\" (curl -i prints one)", clip(string(line), 60))
	}
	in.Status = status
	in.Header = http.Header{}
	for {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		l := strings.TrimRight(string(line), "\r")
		rest = after
		if l == "" || !found && strings.TrimSpace(l) == "" {
			return in, rest, nil
		}
		name, value, ok := strings.Cut(l, ":")
		if !ok || strings.ContainsAny(name, " \t{") {
			return in, nil, fmt.Errorf("header line %q has no name and colon; put an empty line between headers and body", clip(l, 60))
		}
		in.Header.Add(textproto.CanonicalMIMEHeaderKey(name), strings.TrimSpace(value))
		if !found {
			return in, nil, nil
		}
	}
}

// dechunk joins a chunked body that is still in its wire form.
func dechunk(h http.Header, body []byte) []byte {
	if !strings.EqualFold(h.Get("Transfer-Encoding"), "chunked") {
		return body
	}
	size, _, _ := bytes.Cut(body, []byte("\n"))
	if _, err := strconv.ParseUint(strings.TrimSpace(string(size)), 16, 32); err != nil {
		return body
	}
	joined, err := io.ReadAll(io.LimitReader(httputil.NewChunkedReader(bufio.NewReader(bytes.NewReader(body))), maxBody))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && len(joined) == 0 {
		return body
	}
	return joined
}

// Case is one line of the JSONL form: an answer with its id.
type Case struct {
	ID    string
	Input Input
}

// ParseLine reads one JSON object: {"id", "provider", "dialect", "status", "headers", "body",
// "streaming": false|"first-event"|"mid-stream", "now"?}; "model" and "rate_limit_scope" may
// follow. A header's value may be a string or a list; a body that is not a string is taken as
// the JSON that it is. Without "now" the case's clock is the one given.
func ParseLine(line []byte, now time.Time) (Case, error) {
	var l struct {
		ID             string                     `json:"id"`
		Provider       string                     `json:"provider"`
		Dialect        string                     `json:"dialect"`
		Model          string                     `json:"model"`
		RateLimitScope string                     `json:"rate_limit_scope"`
		Status         int                        `json:"status"`
		Headers        map[string]json.RawMessage `json:"headers"`
		Body           json.RawMessage            `json:"body"`
		Streaming      json.RawMessage            `json:"streaming"`
		Now            string                     `json:"now"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return Case{}, fmt.Errorf("not one JSON object with the fields id, provider, dialect, status, headers, body and streaming: %w", err)
	}
	in := Input{Provider: l.Provider, Dialect: l.Dialect, Model: l.Model, Status: l.Status, Header: http.Header{}, Now: now}
	if l.RateLimitScope != "" {
		s, err := resilience.ParseScope(l.RateLimitScope)
		if err != nil || s != resilience.ScopeModel && s != resilience.ScopeConnection {
			return Case{}, fmt.Errorf("rate_limit_scope %q: write model or connection", l.RateLimitScope)
		}
		in.RateLimitScope = s
	}
	if l.Now != "" {
		t, err := time.Parse(time.RFC3339, l.Now)
		if err != nil {
			return Case{}, fmt.Errorf("now %q: write a time such as 2026-01-05T10:00:00Z", l.Now)
		}
		in.Now = t
	}
	for name, raw := range l.Headers {
		values, err := headerValues(raw)
		if err != nil {
			return Case{}, fmt.Errorf("header %s: %w", name, err)
		}
		in.Header[textproto.CanonicalMIMEHeaderKey(name)] = values
	}
	switch s := string(l.Streaming); s {
	case "", "false", "null", `""`:
	case `"first-event"`:
		in.Phase = PhaseFirstEvent
	case `"mid-stream"`:
		in.Phase = PhaseMidStream
	default:
		return Case{}, fmt.Errorf("streaming %s: write false, \"first-event\" or \"mid-stream\"", s)
	}
	if len(l.Body) > 0 && l.Body[0] == '"' {
		var s string
		if err := json.Unmarshal(l.Body, &s); err != nil {
			return Case{}, fmt.Errorf("body: %w", err)
		}
		in.Body = []byte(s)
	} else if string(l.Body) != "null" {
		in.Body = l.Body
	}
	return Case{ID: l.ID, Input: in}, nil
}

func headerValues(raw json.RawMessage) ([]string, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		return many, nil
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return []string{n.String()}, nil
	}
	return nil, errors.New("write a string or a list of strings")
}

// Result is a verdict as the command line prints it, one JSON object a line.
type Result struct {
	ID    string `json:"id"`
	Scope string `json:"scope"`
	Kind  string `json:"kind"`
	// RetryAfterMs is the wait that the answer states, null when it states none; Until is when
	// the exclusion would end by that or by the quota window that the answer implies.
	RetryAfterMs *int64  `json:"retry_after_ms"`
	Until        *string `json:"until"`
	RetrySame    bool    `json:"retry_same"`
	RetryElse    bool    `json:"retry_elsewhere"`
	// Quarantine says that a person is needed: the connection is quarantined or, where the scope
	// is model, the model locked at once.
	Quarantine bool   `json:"quarantine"`
	Rule       string `json:"rule"`
}

// NewResult puts a verdict that was read at now into its printed form.
func NewResult(id string, v resilience.Verdict, now time.Time) Result {
	r := Result{ID: id, Scope: v.Scope.String(), Kind: v.Kind.String(), RetrySame: v.RetrySame, RetryElse: v.RetryElsewhere,
		Quarantine: v.Quarantine || v.Certain && v.Scope == resilience.ScopeModel, Rule: v.Rule}
	if v.RetryAfter > 0 {
		ms := int64(math.Ceil(float64(v.RetryAfter) / float64(time.Millisecond)))
		r.RetryAfterMs = &ms
	}
	until := v.Until
	if v.RetryAfter > 0 && now.Add(v.RetryAfter).After(until) {
		until = now.Add(v.RetryAfter)
	}
	if !until.IsZero() {
		s := until.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		r.Until = &s
	}
	return r
}
