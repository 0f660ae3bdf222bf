package classify

import "bytes"

// quickHealthy is the cheap way past a good answer: one pass over the bytes that allocates
// nothing. It says yes only to a whole JSON object with content in it and nothing at its top
// that an error would have; everything out of the ordinary is left to the full reading.
func quickHealthy(in Input) bool {
	b := in.Body
	clipped := len(b) > maxBody
	if clipped {
		b = b[:maxBody]
	}
	if in.Phase != PhaseBody || len(b) == 0 || b[0] != '{' {
		return false
	}
	depth, content := 0, false
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return content && len(bytes.TrimSpace(b[i+1:])) == 0
			}
		case '"':
			end := stringEnd(b, i)
			if end < 0 {
				return clipped && content
			}
			key := b[i+1 : end]
			i = end
			// A key is followed by a colon at once in what servers print; others pay the full price.
			if end+2 >= len(b) || b[end+1] != ':' || len(key) == 0 {
				continue
			}
			v := end + 2
			if b[v] == ' ' {
				v++
			}
			if content && depth != 1 && key[0] != 'f' {
				continue
			}
			switch keyMeaning(key, b[v:], depth) {
			case suspicious:
				return false
			case contentful:
				content = true
			}
		}
	}
	return clipped && content
}

// stringEnd returns the index of the quote that ends the string beginning at i, -1 without one.
func stringEnd(b []byte, i int) int {
	// Most strings are keys and short words, for which a plain loop is faster than a call.
	j := i + 1
	for short := min(len(b), i+24); j < short; j++ {
		switch b[j] {
		case '"':
			return j
		case '\\':
			j++
		}
	}
	for j < len(b) {
		k := bytes.IndexByte(b[j:], '"')
		if k < 0 {
			return -1
		}
		at := j + k
		n := at
		for n > j && b[n-1] == '\\' {
			n--
		}
		if (at-n)%2 == 0 {
			return at
		}
		j = at + 1
	}
	return -1
}

type meaning uint8

const (
	plain meaning = iota
	suspicious
	contentful
)

// keyMeaning judges a member by its key and the beginning of its value.
func keyMeaning(key, value []byte, depth int) meaning {
	if len(value) < 2 {
		return plain
	}
	switch string(key) {
	case "content", "text", "reasoning_content", "reasoning", "arguments", "thinking", "partial_json", "refusal", "name":
		if value[0] == '"' && value[1] != '"' {
			return contentful
		}
	case "embedding", "functionCall", "inlineData":
		return contentful
	case "finish_reason":
		if bytes.HasPrefix(value, []byte(`"error"`)) {
			return suspicious
		}
	}
	if depth != 1 {
		return plain
	}
	switch string(key) {
	case "error":
		if !bytes.HasPrefix(value, []byte("null")) {
			return suspicious
		}
	case "errors", "detail", "base_resp", "promptFeedback", "response", "success", "code", "error_code", "error_msg", "errorCode", "__type", "msg":
		return suspicious
	case "message":
		if value[0] == '"' {
			return suspicious
		}
	case "type", "object":
		if bytes.HasPrefix(value, []byte(`"error"`)) {
			return suspicious
		}
	case "status":
		if !bytes.HasPrefix(value, []byte(`"completed"`)) {
			return suspicious
		}
	}
	return plain
}
