package classify

import (
	"strconv"
	"strings"
)

// answerKeys are the members that only an answer has.
var answerKeys = [...]string{"choices", "candidates", "content", "output", "data", "embedding", "embeddings", "message", "response", "results", "done", "delta", "usage"}

// hasAnswer reports whether the object looks like an answer of some dialect.
func hasAnswer(d *document, n *node) bool {
	for _, k := range answerKeys {
		if m := d.get(n, k); m != nil && m.kind >= nArray {
			return true
		}
	}
	return false
}

// hasError reports whether an object that came with a success status says that it failed.
func hasError(d *document, n *node) bool {
	if n == nil || n.kind != nObject {
		return false
	}
	if e := d.get(n, "error"); truthy(e) {
		return true
	}
	if v := d.get(n, "type"); v != nil && v.kind == nString && (v.val == "error" || v.val == "response.failed" || strings.HasPrefix(v.val, "urn:")) {
		return true
	}
	if v := d.get(n, "object"); v != nil && v.val == "error" {
		return true
	}
	if v := d.path(n, "base_resp", "status_code"); v != nil && v.val != "0" && v.kind != nNull {
		return true
	}
	for _, e := range [...]*node{d.path(n, "response", "error"), d.path(n, "Response", "Error"), d.get(n, "Error")} {
		if truthy(e) && e.kind == nObject {
			return true
		}
	}
	if v := d.get(n, ":message-type"); v != nil && (v.val == "exception" || v.val == "error") {
		return true
	}
	if v := d.get(n, "status"); v != nil && v.val == "failed" {
		return true
	}
	if hasAnswer(d, n) {
		return false
	}
	for _, k := range [...]string{"error_code", "errorCode", "err_code", "errcode"} {
		if v := d.get(n, k); v != nil && v.kind != nNull && v.val != "0" && v.val != "" {
			return true
		}
	}
	if e := d.get(n, "errors"); e != nil && e.child != 0 {
		return true
	}
	if v := d.get(n, "success"); v != nil && v.val == "false" {
		return true
	}
	for _, k := range [...]string{"detail", "__type", "error_msg", "error_message", "errmsg", "faultstring", "fault"} {
		if truthy(d.get(n, k)) {
			return true
		}
	}
	for _, k := range [...]string{"message", "msg"} {
		if v := d.get(n, k); v != nil && v.kind == nString && v.val != "" {
			return !okCode(d.get(n, "code"))
		}
	}
	if v := d.get(n, "status"); v != nil && statusOf(v.val) != 0 {
		return true
	}
	return false
}

// okCode reports whether a code member says that all is well.
func okCode(n *node) bool {
	if n == nil {
		return false
	}
	switch strings.ToLower(n.val) {
	case "0", "200", "ok", "success", "20000":
		return true
	}
	return false
}

func truthy(n *node) bool {
	if n == nil {
		return false
	}
	switch n.kind {
	case nString:
		return n.val != ""
	case nBool:
		return n.val == "true"
	case nNumber:
		return n.val != "0"
	case nArray, nObject:
		return n.child != 0
	}
	return false
}

// statusOf reads an error status from a code member: 429, "429", "403 FORBIDDEN".
func statusOf(s string) int {
	if len(s) < 3 || len(s) > 3 && s[3] != ' ' {
		return 0
	}
	n, err := strconv.Atoi(s[:3])
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// collect reads the codes, words and hints of an error envelope.
func (a *answer) collect(d *document, n *node, at string, depth int) {
	if n == nil || depth > 6 {
		return
	}
	switch n.kind {
	case nString:
		a.message(n.val, at, depth)
		return
	case nArray:
		count := 0
		d.each(n, func(e *node) {
			if count++; count <= 8 {
				a.collect(d, e, at, depth+1)
			}
		})
		return
	case nObject:
	default:
		return
	}
	if t := d.get(n, "@type"); t != nil {
		a.googleDetail(d, n, t.val)
		return
	}
	if d.get(n, "loc") != nil && (d.get(n, "msg") != nil || d.get(n, "type") != nil) {
		a.validation(d, n)
		return
	}
	d.each(n, func(m *node) { a.member(d, n, m, at, depth) })
}

// member reads one member of an envelope's object.
func (a *answer) member(d *document, n, m *node, at string, depth int) {
	key := strings.ToLower(m.key)
	switch key {
	case "error", "errors", "err", "error_details", "fault", "exception", "inner_error", "innererror", "cause", "base_resp", "baseresp", "payload", "response", "detail", "details", "data", "body":
		switch {
		case m.kind == nString:
			if key == "error" || key == "err" || key == "exception" || key == "cause" {
				// {"error": "invalid_grant"} is a code, {"error": "The model …"} words.
				if !strings.ContainsRune(m.val, ' ') {
					a.addCode(m.val, at+key)
				}
			}
			if key != "data" && key != "response" && key != "payload" {
				a.message(m.val, at+key, depth)
			}
		case key == "response" && depth > 1, key == "data" && hasAnswer(d, n):
		default:
			a.collect(d, m, key+".", depth+1)
		}
	case "code", "type", "status", "reason", "__type", "error_code", "errorcode", "err_code", "errcode", "error_type", "errortype", "http_code", "http_status",
		"status_code", "statuscode", ":exception-type", ":error-code", "limit_source", "limit_type", "sub_code", "subcode", "error_name", "original_code", "originalstatuscode":
		if m.kind == nObject {
			a.collect(d, m, key+".", depth+1)
			return
		}
		if m.kind != nString && m.kind != nNumber || m.val == "error" || m.val == "response.failed" || key == "status" && (m.val == "failed" || m.val == "error") {
			return
		}
		if s := statusOf(m.val); s != 0 {
			if a.status < 400 {
				a.status = s
			}
			if len(m.val) == 3 && (key == "status" || key == "status_code" || key == "statuscode" || key == "http_code" || key == "http_status") {
				return
			}
		}
		if strings.Count(m.val, " ") > 2 {
			a.addText(m.val)
		}
		a.addCode(m.val, at+m.key)
	case "message", "msg", "error_msg", "errmsg", "error_message", "errormessage", "err_msg", "status_msg", "statusmsg", "error_description", "description", "faultstring", "title", "raw", "localizedmessage", "reasonphrase":
		if m.kind == nString {
			if key == "raw" {
				a.set(isRelayed)
			}
			a.message(m.val, at+m.key, depth)
			return
		}
		a.collect(d, m, at, depth+1)
	case "metadata":
		a.metadata(d, m, depth)
	case "headers":
		a.innerHeaders(d, m)
	case "parameters":
		// Of the parameters of an error only the waits are the upstream's own.
		d.each(m, func(p *node) { a.hints.member(strings.ToLower(p.key), p) })
	case "param", "field", "path", "pointer":
		if m.kind == nString && requestField(m.val) {
			a.set(isShape)
		}
	case "content_filter_result", "contentfilter", "innercontentfilterresult":
		a.addCode("content_filter", at+m.key)
	default:
		a.hints.member(key, m)
	}
}

// requestField reports whether a parameter's name points into the request, whose complaint may
// repeat it, and not at the model or the key. A path of a URL is no parameter.
func requestField(p string) bool {
	p = strings.ToLower(p)
	if p == "" || strings.HasPrefix(p, "/") {
		return false
	}
	for _, f := range [...]string{"model", "engine", "deployment", "key", "auth", "organization", "project"} {
		if strings.Contains(p, f) {
			return false
		}
	}
	return true
}

// message reads a string that holds an error: words, JSON once more, or words around JSON.
func (a *answer) message(s, at string, depth int) {
	t := strings.TrimSpace(s)
	if t == "" {
		return
	}
	if depth < 6 && (t[0] == '{' || t[0] == '[') {
		// JSON that a sentence goes on after is a value that the sentence is about.
		if d, rest, ok := parseJSON(t); ok && strings.Trim(rest, " \t\r\n.,;)]}\"'") == "" {
			a.collect(&d, d.root(), at+".", depth+1)
			return
		}
	}
	if i := wrappedJSON(t); i > 0 && depth < 6 {
		if d, _, ok := parseJSON(t[i:]); ok && d.root().child != 0 {
			a.set(isRelayed)
			a.addText(t[:i])
			a.collect(&d, d.root(), at+".", depth+1)
			return
		}
	}
	a.addText(t)
}

// wrappedJSON returns where the JSON starts in "SomeException - {…}" and "Error code: 401 - {…}",
// 0 where the message is nothing of that kind. The words before it must be a wrapper's, without
// quotes, so that JSON in an echoed prompt is not taken for an error.
func wrappedJSON(s string) int {
	i := strings.IndexByte(s[:min(len(s), 160)], '{')
	if i < 3 || strings.ContainsAny(s[:i], "\"`\n“「『«‹《") {
		return 0
	}
	head := strings.ToLower(s[:i])
	for _, w := range [...]string{"exception", "error", "status code", "provider", "upstream"} {
		if j := strings.Index(head, w); j >= 0 && j < 100 {
			for _, no := range [...]string{"invalid", "content", "prompt", "parse", "unexpected", "unknown", "no such", "unsupported", "unrecognized"} {
				if strings.Contains(head, no) {
					return 0
				}
			}
			return i
		}
	}
	return 0
}

// validation reads one entry of a list of request errors: {"loc", "msg", "type", "input"}. Its
// input is the caller's text.
func (a *answer) validation(d *document, n *node) {
	a.set(isShape)
	if m := d.get(n, "msg"); m != nil {
		a.addText(m.val)
	}
	if t := d.get(n, "type"); t != nil {
		a.addCode(t.val, "detail.type")
	}
}

// metadata reads what aggregators and Google put beside an error.
func (a *answer) metadata(d *document, n *node, depth int) {
	d.each(n, func(m *node) {
		switch key := strings.ToLower(m.key); key {
		case "raw":
			if m.kind == nString || m.kind == nObject {
				a.set(isRelayed)
				a.collect(d, m, "metadata.raw.", depth+1)
			}
		case "error_type", "limit_source", "code", "reason", "type":
			if m.kind == nString {
				a.addCode(m.val, "metadata."+m.key)
			}
		case "reasons":
			if m.child != 0 {
				a.addCode("moderation", "metadata.reasons")
			}
		case "headers":
			a.innerHeaders(d, m)
		case "provider_name":
			a.setIf(isShared, m.kind == nString && m.val != "")
		case "quota_limit", "quota_metric", "quotaid":
			a.quotaID(m.val)
		case "quota_limit_value":
			a.setIf(isLimitZero, m.val == "0")
		default:
			a.hints.member(key, m)
		}
	})
}

// innerHeaders reads headers that were put into a body: {"X-RateLimit-Reset": "…"}.
func (a *answer) innerHeaders(d *document, n *node) {
	if n == nil || n.kind != nObject {
		return
	}
	if a.hints.inner == nil {
		a.hints.inner = map[string][]string{}
	}
	d.each(n, func(m *node) {
		if m.kind == nString || m.kind == nNumber {
			a.hints.inner.Set(m.key, m.val)
		}
	})
}

// googleDetail reads one of error.details: google.rpc's QuotaFailure, RetryInfo, ErrorInfo, BadRequest.
func (a *answer) googleDetail(d *document, n *node, typ string) {
	switch {
	case strings.HasSuffix(typ, "QuotaFailure"):
		d.each(d.get(n, "violations"), func(v *node) {
			for _, k := range [...]string{"quotaId", "quotaMetric", "subject"} {
				if q := d.get(v, k); q != nil {
					a.quotaID(q.val)
				}
			}
			if q := d.get(v, "quotaValue"); q != nil && q.val == "0" {
				a.set(isLimitZero)
			}
			if q := d.path(v, "quotaDimensions", "model"); q != nil {
				a.set(namesModel)
			}
		})
	case strings.HasSuffix(typ, "RetryInfo"):
		if r := d.get(n, "retryDelay"); r != nil {
			a.hints.delay(r.val, "RetryInfo.retryDelay")
		}
	case strings.HasSuffix(typ, "ErrorInfo"):
		if r := d.get(n, "reason"); r != nil {
			a.addCode(r.val, "details.reason")
		}
		if m := d.get(n, "metadata"); m != nil {
			a.metadata(d, m, 3)
		}
	case strings.HasSuffix(typ, "BadRequest"):
		d.each(d.get(n, "fieldViolations"), func(v *node) {
			if f := d.get(v, "field"); f != nil && f.val != "" {
				a.setIf(isShape, !strings.Contains(strings.ToLower(f.val), "model") && !strings.Contains(strings.ToLower(f.val), "key"))
			}
		})
	case strings.HasSuffix(typ, "LocalizedMessage"):
		if m := d.get(n, "message"); m != nil {
			a.addText(m.val)
		}
	}
}

// quotaID reads the window from a quota's name.
func (a *answer) quotaID(id string) {
	c := canonicalCode(id)
	switch {
	case strings.Contains(c, "perday"), strings.Contains(c, "daily"):
		a.set(isDayQuota)
	case strings.Contains(c, "perminute"), strings.Contains(c, "persecond"):
		a.set(isMinuteQuota)
	}
	if strings.Contains(c, "permodel") || strings.Contains(c, "perbasemodel") {
		a.set(namesModel)
	}
}
