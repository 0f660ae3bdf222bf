package responses

import (
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/openai"
	"omniroute/internal/dialect/sse"
)

// appendFailure appends what the API itself sends when it fails within a stream: an event with
// the error, and one with the failed response. Clients differ in which of the two they read.
// number is the number of the first event, id and model the response's, output what it holds so far.
func appendFailure(dst []byte, r *dialect.ErrorReport, number int64, id, model string, output []item) []byte {
	body := openai.Dialect{}.ErrorBody(r) // {"error":{…}}
	event := append([]byte(`{"type":"error","sequence_number":`), strconv.FormatInt(number, 10)...)
	event = append(append(event, ','), body[1:]...)
	dst = sse.Append(dst, "error", event)
	switch {
	case id != "":
	case r.RequestID != "": // nothing was sent of a response, and some clients wait for its end alone
		id = "resp_" + r.RequestID
	default:
		return dst
	}
	if output == nil {
		output = []item{}
	}
	event = append(event[:0], `{"type":"response.failed","sequence_number":`...)
	event = strconv.AppendInt(event, number+1, 10)
	event = append(event, `,"response":{"id":`...)
	event = dialect.AppendString(event, id)
	event = append(event, `,"object":"response","status":"failed","model":`...)
	event = dialect.AppendString(event, model)
	event = append(event, `,"output":`...)
	event = append(event, neutral.Encode(output)...)
	event = append(event, `,"usage":null,"incomplete_details":null,`...)
	code := r.Code
	if code == "" || code == dialect.CodeUpstreamError {
		code = "server_error"
	}
	event = append(event, `"error":{"code":`...)
	event = dialect.AppendString(event, code)
	event = append(event, `,"message":`...)
	event = dialect.AppendString(event, r.BoundedMessage())
	event = append(event, "}}}"...)
	return sse.Append(dst, "response.failed", event)
}
