package translate

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/openai"
	"omniroute/internal/dialect/responses"
)

// AsChat returns the chat request that a request to the chat path stands for. Some editors send
// the body of a Responses request there, for models that they know from that API, and read the answer as a
// chat's. Any other request is returned as it is. The error is a *dialect.RequestError, or a
// *neutral.UnsupportedError for what a chat has no place for.
func AsChat(asked *dialect.Request) (*dialect.Request, error) {
	if asked.Operation != dialect.OpGenerate || !asked.HasInput || asked.HasMessages || !strings.HasSuffix(strings.TrimRight(asked.Path, "/"), "/chat/completions") {
		return asked, nil
	}
	source, err := Read(responses.Dialect{}, asked)
	if err != nil {
		return nil, err
	}
	said, err := source.For(openai.Dialect{}, Options{Model: asked.Model})
	if err != nil {
		return nil, err
	}
	return openai.Dialect{}.ReadRequest(asked.Path, said.Body())
}
