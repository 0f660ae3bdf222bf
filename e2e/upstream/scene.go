package upstream

import (
	"net/http"
	"slices"
	"strings"
)

// Pixel is a PNG image of one dot, in base64.
const Pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// The texts that clients send in the scenes.
const (
	System = "Answer in few words."
	Prompt = "Tell me what you know."
)

// Call is one use of a tool.
type Call struct {
	ID, Name string
	// Args is a JSON object, Result what the tool says.
	Args, Result string
}

// Calls are what the scenes "tools" (the first alone) and "parallel" ask for.
var Calls = []Call{
	{"call_weather1", "weather", `{"city":"Paris","days":2}`, "mild, 18 degrees"},
	{"call_clock2", "clock", `{"zone":"Europe/Rome"}`, "21:40"},
}

// Reply is what a client must have read at the end of a scene.
type Reply struct {
	Text string `json:"text"`
	// Thought is the reasoning, where the scene has one.
	Thought string `json:"thought"`
	Calls   []Call `json:"-"`
	// Status is an HTTP error's; Broken says that the answer has a beginning and then an error.
	Status int  `json:"status"`
	Broken bool `json:"broken"`
}

// Input and Output are the tokens that every answer counts.
const (
	Input  = 12
	Output = 7
)

const lastWords = "the rest"

// seen is what a request brought.
type seen struct {
	system, prompt string
	images         []string // in base64
	tools          []string
	calls          []string // of the assistant, by id, or by name in a dialect without ids
	results        map[string]string
	schema         bool // one with the property "answer"
	thinking       bool
}

// answer is what a vendor says.
type answer struct {
	model   string
	thought string
	text    []string // as it is cut into events
	calls   []Call
}

type scene struct {
	answer answer
	// after is the answer when tools have said theirs.
	after answer
	// needs names what the request lacks, or nothing.
	needs func(seen) string
	// status, not zero, is an HTTP error with the message.
	status  int
	message string
	// breaks says that an error event ends the answer.
	breaks bool
}

var (
	toolsAnswer    = answer{text: []string{"Let me ", "look."}, calls: Calls[:1]}
	parallelAnswer = answer{text: []string{"Let me ", "look."}, calls: Calls}
	toolsAfter     = answer{text: []string{"It is ", "mild."}}
)

var scenes = map[string]scene{
	"text":      {answer: answer{text: []string{"Hello ", "wörld.\n"}}, needs: nothing},
	"tools":     {answer: toolsAnswer, after: toolsAfter, needs: toolsAndResults(1)},
	"parallel":  {answer: parallelAnswer, after: toolsAfter, needs: toolsAndResults(2)},
	"image":     {answer: answer{text: []string{"One ", "dot."}}, needs: image},
	"schema":    {answer: answer{text: []string{`{"answer"`, `:42}`}}, needs: schema},
	"reasoning": {answer: answer{thought: "Six times seven.", text: []string{"4", "2"}}, needs: thinking},
	"refused":   {status: http.StatusBadRequest, message: "This model cannot do that."},
	"limited":   {status: http.StatusTooManyRequests, message: "Rate limit reached."},
	"broken":    {answer: answer{text: []string{"A beginning and ", lastWords}}, needs: nothing, breaks: true},
}

// Scenes are the names of all scenes.
var Scenes = []string{"text", "tools", "parallel", "image", "schema", "reasoning", "refused", "limited", "broken"}

// StreamedOnly says that a scene makes no sense for an answer in one piece.
func StreamedOnly(name string) bool { return scenes[name].breaks }

// Want is what a client must come to in a scene. Text is that of the last answer.
func Want(name string) Reply {
	s := scenes[name]
	if s.status != 0 {
		return Reply{Status: s.status}
	}
	last := s.answer
	if len(s.after.text) > 0 {
		last = s.after
	}
	return Reply{Text: strings.Join(last.text, ""), Thought: s.answer.thought, Calls: s.answer.calls, Broken: s.breaks}
}

func nothing(in seen) string {
	switch {
	case !strings.Contains(in.system, System):
		return "the system text"
	case !strings.Contains(in.prompt, Prompt):
		return "the user's text"
	}
	return ""
}

func image(in seen) string {
	if lost := nothing(in); lost != "" {
		return lost
	}
	if !slices.Contains(in.images, Pixel) {
		return "the image"
	}
	return ""
}

func schema(in seen) string {
	if !in.schema {
		return "the schema"
	}
	return nothing(in)
}

func thinking(in seen) string {
	if !in.thinking {
		return "the wish for reasoning"
	}
	return nothing(in)
}

// toolsAndResults wants both tools and, once one result is there, those of all n calls.
func toolsAndResults(n int) func(seen) string {
	return func(in seen) string {
		for _, c := range Calls {
			if !slices.Contains(in.tools, c.Name) {
				return "the tool " + c.Name
			}
		}
		if len(in.results) == 0 {
			return nothing(in)
		}
		for _, c := range Calls[:n] {
			if !slices.Contains(in.calls, c.ID) && !slices.Contains(in.calls, c.Name) {
				return "its own call of " + c.Name
			}
			if !strings.Contains(in.results[c.ID]+in.results[c.Name], c.Result) {
				return "the result of " + c.Name
			}
		}
		return nothing(in)
	}
}
