package openai

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
)

// maxChoices bounds how many choices are told apart, the most that OpenAI allows. Further
// ones share the last place.
const maxChoices = 128

// choiceSet is a set of choice indexes.
type choiceSet [maxChoices / 64]uint64

func (s *choiceSet) add(index int) {
	i := min(index, maxChoices-1)
	s[i>>6] |= 1 << (i & 63)
}

func (s *choiceSet) join(other choiceSet) {
	for i := range s {
		s[i] |= other[i]
	}
}

func (s *choiceSet) empty() bool { return *s == choiceSet{} }

// ending is the finish reason of an answer: of several choices one that the upstream gave
// up counts, then the first that did not end well, else the last.
type ending struct {
	finish dialect.Finish
	native string
}

func (e *ending) note(other ending) {
	if other.finish == dialect.FinishError || other.finish != dialect.FinishNone && e.finish <= dialect.FinishStop {
		*e = other
	}
}

// chunk is what the top level of a body or of one event's data says.
type chunk struct {
	err    error // it is not JSON
	object bool  // it is a JSON object

	hasChoices        bool // "choices" is an array
	seen, finished    choiceSet
	end               ending
	content, toolCall bool
	vectors           bool // "data" or "embeddings" is an array that is not empty
	entity            bool // it has an id or an object type: a thing, which may have an "error" of its own
	typed             bool // it has a type, as events of other APIs have

	failed   bool
	envelope []byte
	model    []byte
	usage    dialect.Usage
}

// scanChunk reads one JSON text.
func scanChunk(data []byte, streamed bool) chunk {
	var c chunk
	var groqUsage, choiceUsage dialect.Usage
	var flagged bool // the object calls itself an error
	s := jsonscan.New(data)
	c.object = s.Peek() == '{'
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "choices":
			c.hasChoices = s.Peek() == '['
			for ok := s.Array(); ok; ok = s.More(']') {
				if s.Peek() != '{' {
					s.Skip()
					continue
				}
				ch := scanChoice(&s, data, streamed)
				c.add(&ch)
				if ch.usage.Known {
					choiceUsage = ch.usage
				}
			}
		case "error":
			if says(s.Skip()) {
				c.failed, c.envelope = true, data
			}
		case "id":
			c.entity = s.NonEmptyString() || c.entity
		case "object":
			word := s.Text()
			flagged = string(word) == "error" || flagged
			c.entity = len(word) > 0 || c.entity
		case "type":
			word := s.Text()
			c.typed = len(word) > 0
			flagged = string(word) == "error" || flagged
		case "base_resp": // MiniMax
			flagged = member(&s, "status_code", "status_code") || flagged
		case "model":
			c.model = s.Text()
		case "usage":
			c.usage = scanUsage(&s)
		case "x_groq":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) == "usage" {
					groqUsage = scanUsage(&s)
				} else {
					s.Skip()
				}
			}
		case "data", "embeddings":
			if s.Peek() == '[' {
				c.vectors = jsonscan.Truthy(s.Skip()) || c.vectors
			} else {
				s.Skip()
			}
		default:
			s.Skip()
		}
	}
	if c.err = s.End(); c.err != nil {
		// Nothing of a broken text counts, the finish reason that it begins with least of all.
		return chunk{err: c.err}
	}
	if flagged && c.seen.empty() {
		c.failed, c.envelope = true, data
		c.entity = false
	}
	if !c.usage.Known {
		c.usage = groqUsage
	}
	if !c.usage.Known {
		c.usage = choiceUsage
	}
	return c
}

func (c *chunk) add(ch *choice) {
	c.seen.add(ch.index)
	if ch.end.finish != dialect.FinishNone {
		c.finished.add(ch.index)
	}
	c.end.note(ch.end)
	c.content = c.content || ch.content
	c.toolCall = c.toolCall || ch.toolCall
	if ch.failed && c.envelope == nil {
		c.failed, c.envelope = true, ch.failure
	}
	if ch.end.finish == dialect.FinishError {
		c.failed = true
	}
}

// foreign reports whether it is an event of another API, like the pings that some relays put into every
// stream: clients fail on a chunk that has no choices.
func (c *chunk) foreign() bool {
	return c.object && c.typed && !c.hasChoices && !c.entity && !c.failed && !c.usage.Known
}

// says reports whether the value of an "error" member tells of one: some services send the
// member with nothing in it along with healthy answers.
func says(value []byte) bool {
	s := jsonscan.New(value)
	if s.Peek() != '{' {
		return jsonscan.Truthy(value)
	}
	found := false
	for ok := s.Object(); ok; ok = s.More('}') {
		s.Key()
		found = jsonscan.Truthy(s.Skip()) || found
	}
	return found
}

// listsError reports whether the text is an error envelope in a list, as Google sends it.
func listsError(data []byte) bool {
	s := jsonscan.New(data)
	if s.Peek() != '[' || !s.Array() {
		return false
	}
	found := false
	for ok := s.Object(); ok; ok = s.More('}') {
		if key := s.Key(); string(key) == "error" {
			found = says(s.Skip()) || found
		} else {
			s.Skip()
		}
	}
	return found && s.Err() == nil
}
