package lab

import "strings"

// begins is how a model treats a beginning of its answer.
type begins uint8

const (
	goesOn   begins = iota // the answer is what follows it
	repeats                // the answer has it again
	swallows               // the white space between the two is lost
)

// NoPrefill refuses requests that end with words of the assistant, as newer models do.
func NoPrefill() Fault {
	refuse := Refuse(Error{Status: 400, Type: "invalid_request_error",
		Message: "This model does not support assistant message prefill. The conversation must end with a user message."})
	return Fault{Name: "no-prefill", apply: func(x *exchange) {
		if x.req.begun() != "" {
			refuse.applyTo(x)
		}
	}}
}

// EchoPrefill repeats the beginning of an answer that it is given.
func EchoPrefill() Fault { return shapes("echo-prefill", func(p *plan) { p.begins = repeats }) }

// SwallowSpace loses the white space between the beginning of an answer and what follows it.
func SwallowSpace() Fault { return shapes("swallow-space", func(p *plan) { p.begins = swallows }) }

// Reword has the answer go on in other words after so many.
func Reword(after int) Fault {
	return shapes("reword", func(p *plan) { p.reword, p.rewordAfter = true, after })
}

// said is the text of the answer, without the beginning that the client has given.
func (x *exchange) said(full string) string {
	if x.plan.reword {
		words := strings.SplitAfter(full, " ")
		for i := range words {
			if i >= x.plan.rewordAfter {
				words[i] = "re" + words[i]
			}
		}
		full = strings.Join(words, "")
	}
	begun := x.req.begun()
	if begun == "" {
		return full
	}
	rest, own := strings.CutPrefix(full, begun)
	if !own { // another's words: it goes on with its own, from the same place
		words := strings.SplitAfter(full, " ")
		rest = strings.Join(words[min(len(strings.Fields(begun)), len(words)):], "")
		if rest != "" && !strings.HasSuffix(begun, " ") {
			rest = " " + rest
		}
	}
	switch x.plan.begins {
	case repeats:
		return begun + rest
	case swallows:
		return strings.TrimLeft(rest, " ")
	}
	return rest
}
