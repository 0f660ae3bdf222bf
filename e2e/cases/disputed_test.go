package cases

// disputed are the cases that we answer differently on purpose, each with the reason.
var disputed = map[string]string{
	"err-chat-429__chat":                         "wants the code rate_limit_exceeded; codes say what became of the request, all_targets_unavailable where every target is limited; the upstream's own code is for faults of the request",
	"err-chat-429__responses":                    "wants the code rate_limit_exceeded; codes say what became of the request, all_targets_unavailable where every target is limited; the upstream's own code is for faults of the request",
	"unknown-model__chat":                        "wants a 404; a name that nobody lists goes to the only provider of the client's dialect, whose catalogue may be newer than the configuration; a 404 is for a configuration with none or several",
	"resp-reasoning-encrypted-stream__anthropic": "the recording holds a second response behind the end of the first; nothing follows the terminator (law S6), and the case wants the second one",
	"resp-reasoning-encrypted-stream__chat":      "the recording holds a second response behind the end of the first; nothing follows the terminator (law S6), and the case wants the second one",
}
