package dialect

import (
	"bufio"
	"bytes"
	"mime"
	"net/textproto"
	"strings"
)

// maxPartHeader bounds the header of a form's part, in bytes.
const maxPartHeader = 16 << 10

// ReadMultipart reads a request whose body is a multipart form with a field "model", as
// uploads of audio and images have it. Files in it are passed over, not read. The error is a
// *RequestError.
func ReadMultipart(path, contentType string, body []byte) (*Request, error) {
	mediaType, params, err := mime.ParseMediaType(contentType)
	boundary := params["boundary"]
	if err != nil || mediaType != "multipart/form-data" || boundary == "" {
		return nil, requestErrorf("", -1, "The content type must be multipart/form-data with a boundary.")
	}
	r := &Request{Operation: OpOther, Path: path, Body: body, form: true}
	for at := partAfter(body, 0, boundary); at >= 0; {
		length := bytes.Index(body[at:min(len(body), at+maxPartHeader)], []byte("\r\n\r\n"))
		if length < 0 {
			return nil, requestErrorf("", at, "The form cannot be read: a part at byte %d has no header.", at)
		}
		start := at + length + 4
		end := bytes.Index(body[start-2:], []byte("\r\n--"+boundary))
		if end < 0 {
			return nil, requestErrorf("", at, "The form cannot be read: the part at byte %d has no end.", at)
		}
		end = max(start, start-2+end)
		switch fieldName(body[at : at+length+4]) {
		case "model":
			r.Model = string(body[start:end])
			r.BodyModels = append(r.BodyModels, Span{start, end})
		case "stream":
			r.Stream = string(body[start:end]) == "true"
		}
		at = partAfter(body, end, boundary)
	}
	switch {
	case len(r.BodyModels) == 0:
		return nil, requestErrorf("model", -1, "The form field model is missing: name a combo, a provider/model or a model.")
	case r.Model == "":
		return nil, requestErrorf("model", r.BodyModels[len(r.BodyModels)-1].Start, "The form field model is empty: name a combo, a provider/model or a model.")
	}
	return r, nil
}

// partAfter returns where the part begins whose delimiter is the first one from offset on,
// -1 after the last part.
func partAfter(body []byte, from int, boundary string) int {
	delimiter := []byte("--" + boundary)
	for {
		i := bytes.Index(body[from:], delimiter)
		if i < 0 {
			return -1
		}
		at := from + i
		from = at + len(delimiter)
		if at > 0 && !bytes.HasSuffix(body[:at], []byte("\r\n")) {
			continue
		}
		rest := bytes.TrimLeft(body[from:], " \t")
		if bytes.HasPrefix(rest, []byte("\r\n")) {
			return len(body) - len(rest) + 2
		}
		if bytes.HasPrefix(rest, []byte("--")) {
			return -1
		}
	}
}

// fieldName returns the name of the form field that the part's header tells, and nothing
// for a file.
func fieldName(header []byte) string {
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(header))).ReadMIMEHeader()
	if err != nil {
		return ""
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
	if err != nil || !strings.EqualFold(kind, "form-data") || params["filename"] != "" {
		return ""
	}
	return params["name"]
}
