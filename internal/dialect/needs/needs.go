// Package needs estimates what a request needs of a model: tokens, images, tools, a schema. It
// reads the body in place, in one pass, in any dialect, and never fails: of what it cannot read it
// knows nothing.
package needs

import (
	"bytes"

	"omniroute/failover"
	"omniroute/internal/dialect/jsonscan"
)

const (
	// bytesPerToken is on the large side for English and for code, so that the estimate is on the
	// small side: it must not keep a request from a model that can take it.
	bytesPerToken = 4
	// imageTokens is what most models make of an image.
	imageTokens = 800
	// longText is how long a string must be to be taken for data where data may be.
	longText = 256
)

// Read estimates what a request needs. A body that is not JSON needs nothing that is known.
func Read(body []byte) failover.Needs {
	s := jsonscan.New(body)
	if s.Peek() != '{' {
		return failover.Needs{}
	}
	r := reader{s: &s}
	for ok := s.Object(); ok; ok = s.More('}') {
		r.member(s.Key())
	}
	if s.End() != nil {
		return failover.Needs{}
	}
	r.n.Input = (r.text+bytesPerToken-1)/bytesPerToken + r.images*imageTokens
	r.n.Images = r.images > 0
	return r.n
}

type reader struct {
	s            *jsonscan.Scanner
	n            failover.Needs
	text, images int64
}

// member reads a member at the top of the request.
func (r *reader) member(key []byte) {
	switch string(key) {
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		r.output()
	case "generationConfig", "generation_config":
		for ok := r.s.Object(); ok; ok = r.s.More('}') {
			switch string(r.s.Key()) {
			case "maxOutputTokens", "max_output_tokens":
				r.output()
			case "responseSchema", "response_schema", "responseJsonSchema", "response_json_schema":
				r.n.Schema = r.n.Schema || r.s.Peek() == '{'
				r.s.Skip()
			default:
				r.s.Skip()
			}
		}
	case "response_format", "output_format":
		r.format()
	case "text", "output_config": // prompts of old calls are called prompt
		for ok := r.s.Object(); ok; ok = r.s.More('}') {
			if string(r.s.Key()) == "format" {
				r.format()
			} else {
				r.s.Skip()
			}
		}
	case "tools", "functions":
		for ok := r.s.Array(); ok; ok = r.s.More(']') {
			r.n.Tools = true
			r.text += int64(len(r.s.Skip()))
		}
	case "model", "stream", "metadata", "user", "prompt_cache_key", "safety_identifier":
		r.s.Skip()
	default:
		r.value(key)
	}
}

func (r *reader) output() {
	if n, ok := r.s.Int(); ok && n > 0 {
		r.n.Output = max(r.n.Output, n)
	}
}

// format reads how the answer is to look: its type is a schema or not.
func (r *reader) format() {
	for ok := r.s.Object(); ok; ok = r.s.More('}') {
		if string(r.s.Key()) == "type" {
			r.n.Schema = r.n.Schema || string(r.s.Text()) == "json_schema"
		} else {
			r.s.Skip()
		}
	}
}

// value weighs anything below the top: its text counts, data that is no text does not.
func (r *reader) value(key []byte) {
	switch r.s.Peek() {
	case '{':
		for ok := r.s.Object(); ok; ok = r.s.More('}') {
			k := r.s.Key()
			if string(k) != "type" && string(k) != "mimeType" && string(k) != "mime_type" {
				r.value(k)
				continue
			}
			switch t := r.s.Text(); {
			case string(t) == "image_url", string(t) == "input_image", string(t) == "image":
				r.images++
			case k[0] == 'm' && bytes.HasPrefix(t, []byte("image/")):
				r.images++
			}
		}
	case '[':
		for ok := r.s.Array(); ok; ok = r.s.More(']') {
			r.value(nil)
		}
	case '"':
		raw := r.s.Skip()
		if len(raw) > longText && isData(key, raw) {
			return
		}
		r.text += int64(len(raw))
	default:
		r.s.Skip()
	}
}

// isData reports whether a long string is an encoded picture, sound or document.
func isData(key, raw []byte) bool {
	switch string(key) {
	case "data", "file_data", "b64_json", "encrypted_content", "signature", "thoughtSignature", "thought_signature":
		return true
	}
	return bytes.HasPrefix(raw, []byte(`"data:`))
}

// Glance tells what a request may need at most, without reading it: tokens of the prompt are left
// out, and what is only mentioned counts. It takes a tenth of the time.
func Glance(body []byte) (n failover.Needs) {
	n.Images = bytes.Contains(body, []byte(`image`))
	n.Tools = bytes.Contains(body, []byte(`"tools"`)) || bytes.Contains(body, []byte(`"functions"`))
	n.Schema = bytes.Contains(body, []byte(`chema`))
	for _, name := range [][]byte{[]byte(`"max_tokens"`), []byte(`"max_completion_tokens"`), []byte(`"max_output_tokens"`), []byte(`"maxOutputTokens"`)} {
		for rest := body; ; {
			i := bytes.Index(rest, name)
			if i < 0 {
				break
			}
			rest = rest[i+len(name):]
			s := jsonscan.New(bytes.TrimLeft(rest, " \t\r\n:"))
			if v, ok := s.Int(); ok {
				n.Output = max(n.Output, v)
			}
		}
	}
	return n
}
