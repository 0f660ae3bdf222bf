package classify

import (
	"strconv"
	"strings"
)

// readEvents reads server-sent events until the first error or the end.
func (a *answer) readEvents(t string) {
	v := view{a: a}
	event, data := "", ""
	payloads, done, garbled := 0, false, false
	flush := func() bool {
		defer func() { event, data = "", "" }()
		switch {
		case data == "" && event == "":
			return true
		case strings.TrimSpace(data) == "[DONE]":
			done = true
			return true
		}
		payloads++
		garbled = garbled || event != "error" && !mayBeJSON(data)
		return a.chunk(&v, event, data)
	}
	for line := range strings.Lines(t) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "":
			if !flush() {
				return
			}
		case line[0] == ':':
			// DashScope states the status in a comment: ":HTTP_STATUS/429".
			if s, ok := strings.CutPrefix(strings.TrimSpace(line[1:]), "HTTP_STATUS/"); ok {
				if n, err := strconv.Atoi(s); err == nil && n >= 400 && n < 600 {
					a.status = n
				}
			}
		case strings.HasPrefix(line, "data:"):
			d := strings.TrimPrefix(line[5:], " ")
			if data != "" {
				d = data + "\n" + d
			}
			data = d
		case strings.HasPrefix(line, "event:"):
			event = strings.TrimSpace(line[6:])
		case line[0] == '{':
			// JSON without its "data:" prefix.
			data += line
		case !isField(line):
			garbled = true
		}
	}
	if !flush() {
		return
	}
	if garbled && !v.known && a.in.Phase != PhaseMidStream {
		a.set(isGarbled)
		return
	}
	if payloads == 0 {
		a.setIf(isDone, done)
		a.setIf(isBlank, !done)
		return
	}
	a.endOfStream(&v)
}

// isField reports whether a line is one of the event stream's other fields, or the beginning of any
// where the stream broke off.
func isField(line string) bool {
	for _, f := range [...]string{"id:", "retry:", "event:", "data:"} {
		if strings.HasPrefix(line, f) || strings.HasPrefix(f, line) {
			return true
		}
	}
	return false
}

// mayBeJSON reports whether an event's data, perhaps broken off, can be a payload of some dialect;
// none sends bare words or numbers.
func mayBeJSON(data string) bool {
	data = strings.TrimSpace(data)
	return data == "" || data[0] == '{' || data[0] == '[' || data[0] == '"'
}

// readLines reads a stream of JSON lines.
func (a *answer) readLines(t string) {
	v := view{a: a}
	for t = strings.TrimSpace(t); t != ""; t = strings.TrimSpace(t) {
		d, rest, ok := parseJSON(t)
		if !ok {
			a.set(isCut)
			return
		}
		if !a.chunkDoc(&v, "", &d) {
			return
		}
		t = rest
	}
	a.endOfStream(&v)
}

// chunk reads one event's payload. It returns false when the stream ended with it.
func (a *answer) chunk(v *view, event, data string) bool {
	d, _, ok := parseJSON(strings.TrimSpace(data))
	if !ok {
		if event == "error" {
			a.readPlain(data)
			return false
		}
		return true
	}
	return a.chunkDoc(v, event, &d)
}

func (a *answer) chunkDoc(v *view, event string, d *document) bool {
	root := d.root()
	if root.kind == nArray {
		root = cmpNode(d.first(root), root)
	}
	if event == "error" || hasError(d, root) {
		a.facts &^= isNoAnswer
		a.set(isJSON)
		a.collect(d, root, "", 0)
		return false
	}
	if d.cut {
		a.set(isCut)
		return false
	}
	v.d = d
	v.complete(root)
	// A chunk without a choice is a usage block or a preamble; only a whole answer needs one.
	a.facts &^= isNoAnswer
	return !v.bad
}

// endOfStream judges a stream that ended without an error event.
func (a *answer) endOfStream(v *view) {
	switch {
	case !v.known && a.in.Phase == PhaseBody:
		a.healthy = true
	case !v.finished:
		a.set(isCut)
	default:
		a.healthy = v.sound()
	}
}
