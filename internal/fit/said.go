package fit

import "strings"

// said are the words before the number in which upstreams tell how long a prompt they take.
var said = []string{
	"maximum context length is", "maximum context length of", "context length is", "context length of", "context length:",
	"context window of", "context window is", "context window size of", "context window (", "context size (", "context size of", "context limit of", "context limit is",
	"maximum number of tokens allowed (", "max tokens limit:", "maximum prompt length is", "maximum input length of", "input length limit of",
	"token limit of", "configured limit of", "limit for this model is", "maximum model length of", "max size:", "must be <=", "n_ctx = ", "n_ctx: ", "max_model_len=", "max_model_len of", "range of input length should be [1,",
}

// Said reads how many tokens a model takes off the message of a refusal, 0 where it does not say.
func Said(message string) int64 {
	m := strings.ToLower(message)
	for _, words := range said {
		if i := strings.Index(m, words); i >= 0 {
			if n := number(m[i+len(words):]); n > 0 {
				return n
			}
		}
	}
	if before, _, ok := strings.Cut(m, " maximum context length"); ok {
		if n := number(before[strings.LastIndexByte(before, ' ')+1:]); n > 0 {
			return n
		}
	}
	// "prompt is too long: 210000 tokens > 200000 maximum"
	if i := strings.Index(m, " maximum"); i > 0 {
		if k := strings.LastIndexByte(m[:i], '>'); k >= 0 {
			return number(m[k+1:])
		}
	}
	return 0
}

// number reads the number at the beginning, with separators; only one that can be a window.
func number(s string) int64 {
	s = strings.TrimLeft(s, " '\"`*")
	var n int64
	digits := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
			digits++
		case (c == ',' || c == '_' || c == '.') && i+3 < len(s) && isDigits(s[i+1:i+4]):
		case c == 'k' && digits > 0 && digits <= 4:
			return n * 1000
		default:
			i = len(s)
		}
		if digits > 10 {
			return 0
		}
	}
	if n < 256 || n > 1e9 {
		return 0
	}
	return n
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
