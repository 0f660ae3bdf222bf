package classify

import "strings"

// readBody finds out what kind of body it is and reads it. clipped says that more came than was read.
func (a *answer) readBody(s string, clipped bool) {
	t := strings.TrimSpace(s)
	if strings.HasPrefix(t, "\ufeff") {
		t = strings.TrimSpace(t[3:])
	}
	if t == "" {
		if s == "" {
			a.set(isEmpty)
		} else {
			a.set(isBlank)
		}
		a.healthy = a.in.Status == 204
		return
	}
	ct := strings.ToLower(a.in.Header.Get("Content-Type"))
	switch {
	case t[0] == '<':
		a.readMarkup(t)
	case isSSE(t, ct):
		a.set(isStream)
		a.readEvents(t)
	case t[0] == '{' || t[0] == '[' || t[0] == '"' || a.has(isSuccess) && (strings.Contains(ct, "json") || isScalar(t)):
		a.readJSON(t, clipped)
	case a.has(isSuccess) && a.in.Phase == PhaseBody && isOtherMedia(ct):
		// Speech, images, plain transcripts: not every endpoint answers in JSON.
		a.healthy = true
	default:
		a.readPlain(t)
	}
}

func isScalar(t string) bool { return t == "null" || t == "true" || t == "false" }

// isOtherMedia reports whether the answer says that it is neither JSON, a page nor events.
func isOtherMedia(contentType string) bool {
	return contentType != "" && !strings.Contains(contentType, "json") && !strings.Contains(contentType, "html") && !strings.Contains(contentType, "event-stream")
}

func isSSE(t, contentType string) bool {
	for _, p := range [...]string{"data:", "event:", ":", "id:", "retry:"} {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return strings.Contains(contentType, "event-stream") && t[0] != '{' && t[0] != '['
}

// readMarkup reads a page of a proxy, CDN or web server, or an XML error.
func (a *answer) readMarkup(t string) {
	low := strings.ToLower(t[:min(len(t), 16<<10)])
	if !strings.Contains(low, "<html") && !strings.HasPrefix(low, "<!doctype html") && !strings.Contains(low, "<head") && strings.Contains(low, "<code>") {
		a.set(isJSON)
		a.addCode(between(t, "<Code>", "</Code>"), "Code")
		a.addText(between(t, "<Message>", "</Message>"))
		return
	}
	a.set(isHTML)
	for _, m := range [...]string{"cf_chl", "challenge-platform", "just a moment", "attention required", "captcha", "enable javascript and cookies", "checking your browser", "verify you are human", "ddos-guard", "_incapsula_", "perimeterx", "px-captcha", "datadome"} {
		if strings.Contains(low, m) {
			a.set(isChallenge)
		}
	}
	for _, m := range [...]string{`id="root"`, `id="app"`, `id=root`, `id=app`, `id="__next"`, "to run this app", `type="module"`, `id="__nuxt"`} {
		if strings.Contains(low, m) {
			a.set(isApp)
		}
	}
	title := between(low, "<title>", "</title>")
	a.addText(title)
	a.addText(stripTags(low))
}

func between(s, open, shut string) string {
	_, rest, ok := strings.Cut(s, open)
	if !ok {
		return ""
	}
	v, _, ok := strings.Cut(rest, shut)
	if !ok {
		return ""
	}
	return v
}

// stripTags returns a page's text, up to 1 KiB of it.
func stripTags(page string) string {
	var b strings.Builder
	skip := ""
	for i := 0; i < len(page) && b.Len() < 1<<10; {
		if page[i] != '<' {
			j := strings.IndexByte(page[i:], '<')
			if j < 0 {
				j = len(page) - i
			}
			if skip == "" {
				if w := strings.Join(strings.Fields(page[i:i+j]), " "); w != "" {
					b.WriteString(w)
					b.WriteByte(' ')
				}
			}
			i += j
			continue
		}
		j := strings.IndexByte(page[i:], '>')
		if j < 0 {
			break
		}
		tag := page[i+1 : i+j]
		switch {
		case skip != "" && strings.HasPrefix(tag, "/"+skip):
			skip = ""
		case skip == "" && strings.HasPrefix(tag, "script"):
			skip = "script"
		case skip == "" && strings.HasPrefix(tag, "style"):
			skip = "style"
		case skip == "" && strings.HasPrefix(tag, "title"):
			skip = "title"
		}
		i += j + 1
	}
	return b.String()
}

// readPlain reads an error that is bare text.
func (a *answer) readPlain(t string) {
	a.set(isPlain)
	if n, ok := strings.CutPrefix(strings.ToLower(t), "error code: "); ok && len(n) <= 4 {
		// All that Cloudflare says to a client that is no browser.
		a.addCode("cloudflare_"+n, "body")
	}
	a.message(t[:min(len(t), maxText)], "body", 1)
}

// readJSON reads a JSON body, or a stream of JSON lines.
func (a *answer) readJSON(t string, clipped bool) {
	d, rest, ok := parseJSON(t)
	if !ok {
		a.readPlain(t)
		return
	}
	if rest = strings.TrimSpace(rest); rest != "" && rest[0] == '{' && d.root().kind == nObject {
		a.set(isStream)
		a.readLines(t)
		return
	}
	root := d.root()
	if root.kind == nArray {
		if e := d.first(root); e != nil && e.kind == nObject {
			root = e
		}
	}
	if !a.has(isSuccess) || hasError(&d, root) {
		a.set(isJSON)
		a.collect(&d, root, "", 0)
		if a.has(isSuccess) && d.get(root, "choices") == nil {
			a.setIf(isCut, d.cut && !clipped)
		}
		return
	}
	switch {
	case d.cut && !clipped:
		a.set(isCut)
	case root.kind != nObject:
		a.set(isJSON | isJunk)
		if root.kind == nString {
			a.addText(root.val)
		}
	default:
		v := view{a: a, d: &d}
		v.complete(root)
		a.healthy = !v.bad && (clipped || v.sound())
		if a.healthy && (a.in.Phase == PhaseFirstEvent || a.in.Phase == PhaseMidStream) && hasChunk(&d, root) {
			a.healthy = false
			a.set(isCut)
		}
	}
}

// hasChunk reports whether the object is one chunk of a stream and not a whole answer.
func hasChunk(d *document, n *node) bool {
	o := d.get(n, "object")
	return o != nil && strings.HasSuffix(o.val, ".chunk")
}
