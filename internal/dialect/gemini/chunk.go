package gemini

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
)

// finishOf reads a finish reason.
func finishOf(word string) dialect.Finish {
	switch word {
	case "", "FINISH_REASON_UNSPECIFIED":
		return dialect.FinishNone
	case "STOP":
		return dialect.FinishStop
	case "MAX_TOKENS":
		return dialect.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
		return dialect.FinishFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE":
		return dialect.FinishError
	}
	if strings.HasPrefix(word, "IMAGE_") && word != "IMAGE_OTHER" {
		return dialect.FinishFilter
	}
	return dialect.FinishOther
}

// chunk is what a body or one event's data says to a judge.
type chunk struct {
	object            bool
	known             bool // it has a member of an answer
	failed            bool
	content, toolCall bool
	finish            string // of the first candidate
	blocked           string // why the prompt was refused
	id, model         string
	usage             dialect.Usage
	vectors, counted  bool
}

func scanChunk(data []byte) (chunk, error) {
	var c chunk
	s := jsonscan.New(data)
	c.object = s.Peek() == '{'
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "candidates":
			c.known = true
			for ok := s.Array(); ok; ok = s.More(']') {
				c.scanCandidate(&s)
			}
		case "promptFeedback":
			c.known = true
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) == "blockReason" {
					c.blocked = string(s.Text())
				} else {
					s.Skip()
				}
			}
		case "usageMetadata":
			c.known = true
			c.usage = scanUsage(&s)
		case "modelVersion":
			c.model = string(s.Text())
		case "responseId":
			c.id = string(s.Text())
		case "error":
			c.failed = jsonscan.Truthy(s.Skip())
		case "embedding", "embeddings":
			c.vectors = jsonscan.Truthy(s.Skip())
		case "totalTokens":
			_, c.counted = s.Int()
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return chunk{}, err
	}
	return c, nil
}

// scanCandidate reads a candidate. Any of them has content, the first one says how the answer ended.
func (c *chunk) scanCandidate(s *jsonscan.Scanner) {
	finish, first := "", true
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "content":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) != "parts" {
					s.Skip()
					continue
				}
				for ok := s.Array(); ok; ok = s.More(']') {
					c.scanPart(s)
				}
			}
		case "finishReason":
			finish = reason(s.Text())
		case "index":
			n, _ := s.Int()
			first = n == 0
		default:
			s.Skip()
		}
	}
	if first && finish != "" {
		c.finish = finish
	}
}

func reason(word []byte) string {
	if string(word) == "STOP" {
		return "STOP"
	}
	return string(word)
}

func (c *chunk) scanPart(s *jsonscan.Scanner) {
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "text":
			c.content = s.NonEmptyString() || c.content
		case "functionCall":
			if jsonscan.Truthy(s.Skip()) {
				c.content, c.toolCall = true, true
			}
		case "inlineData", "fileData", "executableCode", "codeExecutionResult":
			c.content = jsonscan.Truthy(s.Skip()) || c.content
		default:
			s.Skip()
		}
	}
}

// scanUsage reads a count. Google counts thoughts beside the candidates.
func scanUsage(s *jsonscan.Scanner) dialect.Usage {
	var u dialect.Usage
	var candidates, tools int64
	for ok := s.Object(); ok; ok = s.More('}') {
		var to *int64
		switch key := s.Key(); string(key) {
		case "promptTokenCount":
			to = &u.Input
		case "toolUsePromptTokenCount":
			to = &tools
		case "candidatesTokenCount":
			to = &candidates
		case "thoughtsTokenCount":
			to = &u.Reasoning
		case "cachedContentTokenCount":
			to = &u.CacheRead
		default:
			s.Skip()
			continue
		}
		if n, ok := s.Int(); ok && n >= 0 {
			*to, u.Known = n, true
		}
	}
	u.Input += tools
	u.Output = candidates + u.Reasoning
	return u
}
