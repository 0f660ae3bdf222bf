package cases

// disputed are the cases that we answer differently on purpose, each with the reason.
var disputed = map[string]string{
	"err-chat-429__chat":                         "wants the code rate_limit_exceeded; our codes say what became of the request: all_targets_unavailable",
	"err-chat-429__responses":                    "wants the code rate_limit_exceeded; our codes say what became of the request: all_targets_unavailable",
	"unknown-model__chat":                        "wants a 404; a name that nobody lists goes to the only provider of the client's dialect, whose catalogue may be newer than the configuration",
	"resp-reasoning-encrypted-stream__anthropic": "the recording holds a second response behind the end of the first, which no client reads",
	"resp-reasoning-encrypted-stream__chat":      "the recording holds a second response behind the end of the first, which no client reads",
}
