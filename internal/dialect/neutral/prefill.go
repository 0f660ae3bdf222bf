package neutral

// Prefill is how an upstream is asked to go on from the beginning of an answer: the beginning is
// the last message, of the assistant, and some upstreams want to be told.
type Prefill struct {
	// Message and Body are further members of that message and of the request, as JSON without
	// braces: `"prefix":true`. Empty for none.
	Message, Body string
}

// Continuer is implemented by dialects in which an upstream can be asked to go on.
type Continuer interface {
	// Continue returns the request with the beginning of its answer in it. It reports false where
	// the request is one whose answer nobody goes on with exactly: it ends with words of the
	// assistant already, asks for thoughts or a form, or has no tokens left for more.
	Continue(body []byte, text string, p Prefill) ([]byte, bool)
}

// TokensAtLeast is how few tokens a text may be, for limits that it has used up in part.
func TokensAtLeast(text string) int64 { return int64(len(text)+3) / 4 }
