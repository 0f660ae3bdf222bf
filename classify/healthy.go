package classify

import "bytes"

// quickHealthy is the cheap way past a good answer; it allocates nothing. It reads an object up
// to its first content, and only searches what follows for the few words that could still make
// it a failure. Anything out of the ordinary is left to the full reading, so a false "no" costs
// time and nothing else.
func quickHealthy(in Input) bool {
	b := in.Body
	clipped := len(b) > maxBody
	if clipped {
		b = b[:maxBody]
	}
	if in.Phase != PhaseBody || len(b) == 0 || b[0] != '{' {
		return false
	}
	at := firstContent(b)
	if at < 0 {
		return false
	}
	rest := bytes.TrimRight(b[at:], " \r\n\t")
	if !clipped && (len(rest) == 0 || rest[len(rest)-1] != '}') {
		return false
	}
	return baseResp.index(rest) < 0 && !saysError(rest)
}

// saysError reports whether "error" stands there as a whole string, key or value, other than as
// a key whose value is null. In the text of an answer its quotes would be escaped.
func saysError(b []byte) bool {
	for {
		i := errorWord.index(b)
		if i < 0 {
			return false
		}
		b = bytes.TrimLeft(b[i+len(errorWord.s):], " ")
		if !bytes.HasPrefix(b, []byte(":null")) && !bytes.HasPrefix(b, []byte(": null")) {
			return true
		}
	}
}

var baseResp, errorWord = newNeedle(`"base_resp"`), newNeedle(`"error"`)

// needle is a string to search for by Horspool's algorithm. JSON is full of quotes and of the
// letters of these words, and bytes.Index, which begins with the first byte, takes three times
// as long.
type needle struct {
	s    string
	skip [256]uint8
}

func newNeedle(s string) *needle {
	n := &needle{s: s}
	for i := range n.skip {
		n.skip[i] = uint8(len(s))
	}
	for i := range len(s) - 1 {
		n.skip[s[i]] = uint8(len(s) - 1 - i)
	}
	return n
}

// index returns where the needle begins in b, -1 where it is not.
func (n *needle) index(b []byte) int {
	last := len(n.s) - 1
	for i := last; i < len(b); i += int(n.skip[b[i]]) {
		if b[i] == n.s[last] && string(b[i-last:i+1]) == n.s {
			return i - last
		}
	}
	return -1
}

// firstContent returns where the first content of an answer ends, -1 when there is none or
// something at the top of the object speaks of an error before it.
func firstContent(b []byte) int {
	depth, answer := 0, false
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return -1
			}
		case '"':
			end := stringEnd(b, i)
			if end < 0 {
				return -1
			}
			key := b[i+1 : end]
			i = end
			// A key is followed by its colon at once in what servers print.
			v := end + 2
			if v+1 >= len(b) || b[end+1] != ':' {
				continue
			}
			if b[v] == ' ' {
				v++
			}
			switch value := b[v:]; {
			case depth == 1:
				switch topMember(key, value) {
				case suspicious:
					return -1
				case opensAnswer:
					answer = true
				}
			case answer && isContent(key, value):
				return v
			}
		}
	}
	return -1
}

// stringEnd returns the index of the quote that ends the string beginning at i, -1 without one.
func stringEnd(b []byte, i int) int {
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '"':
			return j
		case '\\':
			j++
		}
	}
	return -1
}

type meaning uint8

const (
	plain meaning = iota
	suspicious
	opensAnswer
)

// topMember judges a member of the outermost object.
func topMember(key, value []byte) meaning {
	switch string(key) {
	case "choices", "candidates", "content", "output", "message":
		if value[0] == '[' || value[0] == '{' {
			return opensAnswer
		}
		return suspicious
	case "error":
		if !bytes.HasPrefix(value, []byte("null")) {
			return suspicious
		}
	case "errors", "detail", "base_resp", "promptFeedback", "response", "success", "code", "error_code", "error_msg", "errorCode", "__type", "msg":
		return suspicious
	case "type", "object":
		if bytes.HasPrefix(value, []byte(`"error"`)) || bytes.HasPrefix(value, []byte(`"response.`)) {
			return suspicious
		}
	case "status":
		if !bytes.HasPrefix(value, []byte(`"completed"`)) {
			return suspicious
		}
	}
	return plain
}

// isContent reports whether a nested member is something that a client would call content.
func isContent(key, value []byte) bool {
	switch string(key) {
	case "content", "text", "reasoning_content", "reasoning", "arguments", "thinking", "refusal":
		return value[0] == '"' && len(value) > 1 && value[1] != '"'
	case "functionCall", "inlineData":
		return true
	}
	return false
}
