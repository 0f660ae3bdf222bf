package dialect

import (
	"bytes"
	"errors"

	"omniroute/internal/dialect/jsonscan"
)

// ReadJSON reads a request whose body is a JSON object that names the model at the top
// level, as all dialects but Gemini have it. It checks the whole body in one pass. The
// error is a *RequestError.
func ReadJSON(op Operation, path string, body []byte) (*Request, error) {
	r := &Request{Operation: op, Path: path, Body: body}
	s := jsonscan.New(body)
	switch s.Peek() {
	case 0:
		return nil, requestErrorf("", 0, "The request has no body; send a JSON object with a model.")
	case '{':
	default:
		return nil, requestErrorf("", s.Pos(), "The request's body must be a JSON object.")
	}
	var fault *RequestError
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "model":
			if s.Peek() != '"' {
				if fault == nil {
					fault = requestErrorf("model", s.Pos(), "The field model must be a string, like \"gpt-5.2\".")
				}
				s.Skip()
				continue
			}
			start := s.Pos()
			r.Model = string(s.String())
			r.BodyModels = append(r.BodyModels, Span{start, s.Pos()})
		case "stream":
			switch s.Peek() {
			case 't', 'f', 'n':
				r.Stream = s.Peek() == 't'
			default:
				if fault == nil {
					fault = requestErrorf("stream", s.Pos(), "The field stream must be true or false.")
				}
			}
			s.Skip()
		case "stream_options":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) == "include_usage" {
					r.IncludeUsage = s.Peek() == 't'
				}
				s.Skip()
			}
		case "messages":
			r.HasMessages = true
			s.Skip()
		case "input":
			r.HasInput = true
			s.Skip()
		default:
			if fault == nil && nearly(key) {
				fault = requestErrorf(string(key), s.Pos(), "The field %s is not one of this API; write %s. Some upstreams take one for the other.", key, bytes.ToLower(key))
			}
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return nil, syntaxFault(err)
	}
	switch {
	case fault != nil:
		return nil, fault
	case len(r.BodyModels) == 0:
		return nil, requestErrorf("model", -1, "The field model is missing: name a combo, a provider/model or a model.")
	case r.Model == "":
		return nil, requestErrorf("model", r.BodyModels[len(r.BodyModels)-1].Start, "The field model is empty: name a combo, a provider/model or a model.")
	}
	return r, nil
}

// nearly reports whether a member differs only in case from one that decides where the request goes and how its
// answer is read. Many servers' parsers take no notice of case, so that the upstream might be asked for a model
// that the client may not have, or send a stream where none is expected.
func nearly(key []byte) bool {
	return len(key) == len("model") && bytes.EqualFold(key, []byte("model")) || len(key) == len("stream") && bytes.EqualFold(key, []byte("stream"))
}

func syntaxFault(err error) *RequestError {
	var syntax *jsonscan.SyntaxError
	if !errors.As(err, &syntax) {
		return requestErrorf("", -1, "The request's body is not JSON: %v.", err)
	}
	return requestErrorf("", syntax.Offset, "The request's body is not valid JSON: %s.", syntax.Error())
}
