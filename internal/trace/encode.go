package trace

import (
	"encoding/json"
	"strconv"
	"time"
)

// The messages of OTLP in their JSON form: ids in hex, numbers of 64 bits as strings.

type otlpRequest struct {
	ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
}

type otlpResourceSpans struct {
	Resource   otlpResource     `json:"resource"`
	ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
}

type otlpResource struct {
	Attributes []otlpAttribute `json:"attributes"`
}

type otlpScopeSpans struct {
	Scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	} `json:"scope"`
	Spans []otlpSpan `json:"spans"`
}

type otlpSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	Parent     string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes,omitempty"`
	Events     []otlpEvent     `json:"events,omitempty"`
	Status     *otlpStatus     `json:"status,omitempty"`
}

type otlpEvent struct {
	At   string `json:"timeUnixNano"`
	Name string `json:"name"`
}

type otlpStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpValue struct {
	String *string `json:"stringValue,omitempty"`
	Int    *string `json:"intValue,omitempty"`
	Bool   *bool   `json:"boolValue,omitempty"`
}

const statusError = 2

// encode makes the body of a request.
func encode(spans []span, service, version string) []byte {
	scope := otlpScopeSpans{Spans: make([]otlpSpan, len(spans))}
	scope.Scope.Name, scope.Scope.Version = "omniroute", version
	for i := range spans {
		s := &spans[i]
		out := otlpSpan{TraceID: s.trace, SpanID: s.id, Parent: s.parent, Name: s.name, Kind: s.kind, Start: nano(s.start), End: nano(s.end), Attributes: encodeAttrs(s.attrs)}
		if !s.first.IsZero() {
			out.Events = []otlpEvent{{nano(s.first), eventFirst}}
		}
		if s.failed {
			out.Status = &otlpStatus{statusError, s.why}
		}
		scope.Spans[i] = out
	}
	request := otlpRequest{[]otlpResourceSpans{{
		Resource:   otlpResource{encodeAttrs([]attr{{"service.name", service}, {"service.version", version}})},
		ScopeSpans: []otlpScopeSpans{scope},
	}}}
	b, err := json.Marshal(request)
	if err != nil { // only a bug: it holds nothing but strings, numbers and truth values
		panic(err)
	}
	return b
}

func nano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func encodeAttrs(attrs []attr) []otlpAttribute {
	out := make([]otlpAttribute, 0, len(attrs))
	for _, a := range attrs {
		var v otlpValue
		switch x := a.value.(type) {
		case string:
			v.String = &x
		case int64:
			v.Int = new(strconv.FormatInt(x, 10))
		case bool:
			v.Bool = &x
		}
		out = append(out, otlpAttribute{a.key, v})
	}
	return out
}
