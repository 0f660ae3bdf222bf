package trace

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"

	"omniroute/failover"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// The attributes' names. Those of OpenTelemetry's conventions for generative AI are still in development, so that
// they stand here and nowhere else.
const (
	attrOperation = "gen_ai.operation.name"
	attrProvider  = "gen_ai.provider.name"
	attrModel     = "gen_ai.request.model"
	attrInput     = "gen_ai.usage.input_tokens"
	attrOutput    = "gen_ai.usage.output_tokens"
	attrCached    = "gen_ai.usage.cache_read.input_tokens"
	attrWritten   = "gen_ai.usage.cache_creation.input_tokens"
	attrReasoning = "gen_ai.usage.reasoning.output_tokens"
	attrMethod    = "http.request.method"
	attrStatus    = "http.response.status_code"
	attrPath      = "url.path"
	attrError     = "error.type"

	attrRequestID  = "omniroute.request_id"
	attrRoute      = "omniroute.route"
	attrDialect    = "omniroute.dialect"
	attrStream     = "omniroute.stream"
	attrAttempts   = "omniroute.attempts"
	attrSkipped    = "omniroute.skipped"
	attrSession    = "omniroute.session"
	attrBroke      = "omniroute.broke"
	attrRecovery   = "omniroute.recovery"
	attrConnection = "omniroute.connection"
	attrOutcome    = "omniroute.outcome"
	attrScope      = "omniroute.verdict.scope"
	attrKind       = "omniroute.verdict.kind"
	attrRule       = "omniroute.verdict.rule"
	attrProbe      = "omniroute.probe"
	attrHedge      = "omniroute.hedge"
	attrResumes    = "omniroute.recovers"
	attrLastResort = "omniroute.last_resort"

	eventFirst = "first_content"
)

// The kinds of span.
const (
	kindServer = 2
	kindClient = 3
)

// span is one in our own words; encode knows the protocol's.
type span struct {
	trace, id, parent string
	name              string
	kind              int
	start, end        time.Time
	attrs             []attr
	first             time.Time // of the first content, zero where there was none
	failed            bool
	why               string
}

type attr struct {
	key   string
	value any // string, int64 or bool
}

// appendSpans makes a request's span and those of its attempts. Where the client is traced its trace goes on and its
// choice counts; else so large a share of requests is traced.
func appendSpans(spans []span, s *telemetry.Story, share float64) []span {
	trace, parent, sampled, ok := parseParent(s.TraceParent)
	if !ok {
		sampled = share >= 1 || rand.Float64() < share
		trace = newID(16)
	}
	if !sampled {
		return spans
	}
	operation := operationOf(s.Path)
	root := span{trace: trace, id: newID(8), parent: parent, name: operation, kind: kindServer, start: s.At, end: s.At.Add(s.Duration)}
	if s.Model != "" {
		root.name += " " + s.Model
	}
	set := func(to *span, key string, value any) {
		switch v := value.(type) {
		case string:
			if v == "" {
				return
			}
		case int64:
			if v == 0 {
				return
			}
		case bool:
			if !v {
				return
			}
		}
		to.attrs = append(to.attrs, attr{key, value})
	}
	set(&root, attrOperation, operation)
	set(&root, attrModel, s.Model)
	set(&root, attrMethod, s.Method)
	set(&root, attrPath, s.Path)
	set(&root, attrStatus, int64(s.Status))
	set(&root, attrRequestID, s.ID)
	set(&root, attrRoute, s.Route)
	set(&root, attrDialect, s.Dialect)
	set(&root, attrStream, s.Stream)
	set(&root, attrAttempts, int64(len(s.Attempts)))
	set(&root, attrSkipped, int64(len(s.Skipped)))
	set(&root, attrSession, s.Session)
	set(&root, attrError, s.Code)
	set(&root, attrBroke, s.Broke)
	if s.Recovery != nil {
		set(&root, attrRecovery, string(s.Recovery.Outcome))
	}
	if s.Usage.Known {
		set(&root, attrInput, s.Usage.Input)
		set(&root, attrOutput, s.Usage.Output)
		set(&root, attrCached, s.Usage.CacheRead)
		set(&root, attrWritten, s.Usage.CacheWrite)
		set(&root, attrReasoning, s.Usage.Reasoning)
	}
	if s.FirstContent > 0 {
		root.first = s.At.Add(s.FirstContent)
	}
	if root.failed = s.Status >= 500 || s.Broke != ""; root.failed {
		root.why = s.Broke
		if root.why == "" {
			root.why = s.Code
		}
	}
	spans = append(spans, root)
	for i := range s.Attempts {
		a := &s.Attempts[i]
		one := span{trace: trace, id: newID(8), parent: root.id, name: operation + " " + a.Key.Model, kind: kindClient, start: a.At, end: a.At.Add(a.Duration)}
		if a.Outcome == failover.OutcomeRunning {
			one.end = root.end
		}
		set(&one, attrOperation, operation)
		set(&one, attrProvider, a.Key.Provider)
		set(&one, attrConnection, a.Key.Connection)
		set(&one, attrModel, a.Key.Model)
		set(&one, attrStatus, int64(a.Status))
		set(&one, attrOutcome, string(a.Outcome))
		set(&one, attrProbe, a.Probe)
		set(&one, attrHedge, a.Hedge)
		set(&one, attrResumes, a.Resumes)
		set(&one, attrLastResort, a.LastResort)
		if a.Verdict.Scope != resilience.ScopeNone {
			set(&one, attrScope, a.Verdict.Scope.String())
			set(&one, attrKind, a.Verdict.Kind.String())
			set(&one, attrRule, a.Verdict.Rule)
		}
		if a.FirstContent > 0 {
			one.first = a.At.Add(a.FirstContent)
		}
		if one.failed = a.Outcome == failover.OutcomeFailed; one.failed {
			one.why = a.Verdict.Scope.String() + "/" + a.Verdict.Kind.String()
			set(&one, attrError, a.Verdict.Kind.String())
		}
		spans = append(spans, one)
	}
	return spans
}

// operationOf is the conventions' word for what was asked.
func operationOf(path string) string {
	switch {
	case strings.HasSuffix(path, "/embeddings"), strings.Contains(path, ":embedContent"), strings.Contains(path, ":batchEmbedContents"):
		return "embeddings"
	case strings.HasSuffix(path, "/chat/completions"), strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/responses"):
		return "chat"
	case strings.HasSuffix(path, "enerateContent"):
		return "generate_content"
	case strings.HasSuffix(path, "/completions"):
		return "text_completion"
	}
	return "request"
}

// parseParent reads W3C's traceparent: 00-TRACE-SPAN-FLAGS.
func parseParent(header string) (trace, span string, sampled, ok bool) {
	if len(header) != 55 || header[:3] != "00-" || header[35] != '-' || header[52] != '-' {
		return "", "", false, false
	}
	trace, span = header[3:35], header[36:52]
	flags, err := hex.DecodeString(header[53:])
	if err != nil || !id(trace) || !id(span) {
		return "", "", false, false
	}
	return trace, span, flags[0]&1 == 1, true
}

// id reports whether text is lower-case hex digits, not all of them 0.
func id(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == "" && strings.Trim(text, "0") != ""
}

func newID(size int) string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], rand.Uint64()|1) // never all zeros
	binary.LittleEndian.PutUint64(b[8:], rand.Uint64())
	return hex.EncodeToString(b[:size])
}
