package openai

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
)

// choice is what one element of "choices" says.
type choice struct {
	index    int
	content  bool
	toolCall bool
	end      ending
	failed   bool   // it has an error of its own
	failure  []byte // the choice's bytes then, which hold the error
	usage    dialect.Usage
}

// scanChoice reads the choice that s is at. In a stream its text is in "delta", in a body
// in "message"; whoever sends the other one is understood, unless both are there: then
// "message" may repeat what was sent before, and only "delta" counts.
func scanChoice(s *jsonscan.Scanner, data []byte, streamed bool) choice {
	var c choice
	var delta, message part
	s.Peek() // past white space
	start := s.Pos()
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "index":
			if n, ok := s.Int(); ok && n > 0 {
				c.index = int(n)
			}
		case "delta":
			delta = scanPart(s)
		case "message":
			message = scanPart(s)
		case "text":
			c.content = s.NonEmptyString() || c.content
		case "finish_reason":
			c.end = finishOf(s.Text())
		case "error":
			c.failed = says(s.Skip())
		case "usage":
			c.usage = scanUsage(s)
		default:
			s.Skip()
		}
	}
	if c.failed && s.Err() == nil {
		c.failure = data[start:s.Pos()]
	}
	text := message
	if streamed && delta.present || !message.present {
		text = delta
	}
	c.content = c.content || text.content
	c.toolCall = text.toolCall
	return c
}

// part is what a delta or a message holds.
type part struct {
	present           bool
	content, toolCall bool
}

func scanPart(s *jsonscan.Scanner) part {
	p := part{present: s.Peek() == '{'}
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "content", "reasoning", "reasoning_content", "reasoning_text", "refusal", "thinking":
			// A string, or with some services an array of typed parts.
			p.content = spoken(s) || p.content
		case "reasoning_details", "thinking_blocks", "images":
			p.content = spoken(s) || p.content
		case "audio":
			p.content = member(s, "data", "transcript") || p.content
		case "function_call":
			if member(s, "name", "arguments") {
				p.content, p.toolCall = true, true
			}
		case "tool_calls":
			for ok := s.Array(); ok; ok = s.More(']') {
				if toolCall(s) {
					p.content, p.toolCall = true, true
				}
			}
		default:
			s.Skip()
		}
	}
	return p
}

// toolCall reads one tool call, or a fragment of one, and reports whether it has a name or
// arguments.
func toolCall(s *jsonscan.Scanner) bool {
	found := false
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "function":
			found = member(s, "name", "arguments") || found
		case "custom":
			found = member(s, "name", "input") || found
		default:
			s.Skip()
		}
	}
	return found
}

// member reads an object and reports whether one of the two members says something.
func member(s *jsonscan.Scanner, a, b string) bool {
	found := false
	for ok := s.Object(); ok; ok = s.More('}') {
		if key := s.Key(); string(key) == a || string(key) == b {
			found = jsonscan.Truthy(s.Skip()) || found
		} else {
			s.Skip()
		}
	}
	return found
}

// spoken reads a value and reports whether it holds text: a string that is not empty, or
// an array of parts of which one has a member besides its type and index that says something.
func spoken(s *jsonscan.Scanner) bool {
	if s.Peek() != '[' {
		return s.NonEmptyString()
	}
	found := false
	for ok := s.Array(); ok; ok = s.More(']') {
		if s.Peek() != '{' {
			found = s.NonEmptyString() || found
			continue
		}
		for ok := s.Object(); ok; ok = s.More('}') {
			switch key := s.Key(); string(key) {
			case "type", "index", "id", "format":
				s.Skip()
			default:
				found = jsonscan.Truthy(s.Skip()) || found
			}
		}
	}
	return found
}
