package classify

// requestRules are about what this request asks for; they come before anything that would
// punish a target, since a provider may use any status for them.
var requestRules = []Rule{
	{ID: "code.context_length", Code: []string{"context_length_exceeded", "*context_length*", "*context_window*", "exceed_context_size*", "tokens_limit_reached", "*prompt_too_long", "input_too_long", "max_context*", "context_overflow*", "*input_tokens_exceeded*", "request_too_long"},
		Scope: request, Kind: tooLong, Why: "the conversation is longer than the model's window",
		Examples: ex(400, `{"error":{"code":"context_length_exceeded","message":"Shorten the conversation."}}`)},
	{ID: "text.context_length", Text: []string{
		"maximum context length", "max context length", "maximum context size", "context window", "context size", "context length", "context limit", "maximum prompt length", "maximum input length", "model token limit", "must have less than * tokens", "prompt is too long", "prompt too long", "prompt * too long", "input is too long", "input too long", "input * too long for",
		"too many tokens: size limit", "too many input tokens", "input token count * exceed", "input tokens exceed", "tokens exceed * maximum", "range of input length", "longer than the maximum model length", "maximum model length",
		"at least 1, got -", "inputs tokens + ", "'' tokens +", "reduce the length of the messages", "reduce the length of your", "reduce your prompt", "exceeds the maximum number of tokens", "exceed the model's maximum", "exceeds the model's maximum",
		"number of tokens * exceed * limit", "tokens * exceeds the * limit of this model", "too many tokens in", "超长", "上下文长度", "最大长度", "输入过长", "超过最大", "token数超", "コンテキスト", "컨텍스트"},
		Not:   []string{"per minute", "per day", "tpm", "rate limit", "beta is not", "credits", "not * available for * subscription"},
		Scope: request, Kind: tooLong, Why: "the same, in words; providers send it with 400, 413, 422 and 500",
		Examples: ex(500, `{"error":"this prompt needs 9000 tokens, more than the available context size"}`)},
	{ID: "text.over_whole_budget", Text: []string{"request too large for", "request too large *: limit", "tokens must be reduced in order to run", "single request exceeds"},
		Scope: request, Kind: tooLarge, Why: "one request above the whole minute's budget: waiting never helps",
		Examples: ex(429, `{"error":{"message":"Request too large for m-1 on tokens per min: Limit 100, Requested 900.","code":"rate_limit_exceeded"}}`)},
	{ID: "code.too_large", Code: []string{"request_too_large", "payload_too_large", "request_entity_too_large", "string_above_max_length", "array_above_max_length", "body_too_large", "content_too_large", "request_body_too_large", "image_too_large", "file_too_large"},
		Scope: request, Kind: tooLarge, Why: "the body is larger than this upstream takes",
		Examples: ex(400, `{"error":{"code":"string_above_max_length","message":"A field is too long."}}`)},
	{ID: "text.too_large", Status: st("400", "413", "422", "2xx"), Text: []string{"request entity too large", "payload too large", "body too large", "body is too large", "exceeds the maximum size", "request size exceeds", "exceeds the maximum allowed size", "maximum request size", "request body * exceeds"},
		Scope: request, Kind: tooLarge, Why: "the same, in words",
		Examples: ex(400, `{"message":"The request body exceeds the maximum size of 4 MB."}`)},
	{ID: "code.content_policy", Code: []string{"content_filter*", "content_policy*", "*content_filtered", "invalid_prompt", "*data_inspection_failed", "moderation*", "content_blocked", "*sensitive_content*", "responsible_ai*", "*content_violation*", "prohibited_content", "safety", "safety_*", "blocked_content", "guardrail*", "cyber_policy*", "bio_policy*", "unsafe_content", "image_safety", "*policy_violation", "blocklist", "content_moderation*"},
		Scope: request, Kind: content, Why: "a filter refused the prompt or the output; another provider may not",
		Examples: ex(400, `{"error":{"code":"content_filter","message":"Refused."}}`)},
	{ID: "text.content_policy", Status: st("2xx", "400", "403", "422", "451", "498", "500"), Text: []string{
		"was flagged", "been flagged", "content management policy", "content policy", "content filter", "content filtering policy", "usage policy", "usage guidelines", "usage policies", "safety system", "safety reasons", "safety filter", "safety guardrail", "content moderation", "moderation", "inappropriate content",
		"considered high risk", "blocked output", "blocked by our", "output blocked", "prompt was blocked", "prompt blocked", "response was blocked", "sensitive content", "new_sensitive", "potentially violating", "violates our", "violate our", "harmful content", "prohibited content", "敏感", "违规内容", "不安全", "内容安全", "审核"},
		Not:   []string{"terms of service", "account", "terms of use"},
		Scope: request, Kind: content, Why: "the same, in words",
		Examples: ex(400, `{"error":{"message":"The prompt was flagged by our moderation."}}`)},
	{ID: "code.response_gone", Code: []string{"previous_response_not_found", "conversation_not_found", "response_not_found"},
		Scope: request, Kind: invalid, same: sameYes, Why: "a stored response lives on another account: nobody's model is missing",
		Examples: ex(400, `{"error":{"code":"previous_response_not_found","message":"That response is not here."}}`)},
	{ID: "text.partial_funds", Status: st("2xx", "402", "403"), Text: []string{"can only afford 0", "afford 0 "},
		Scope: connection, Kind: billing, Why: "nothing can be afforded any more",
		Examples: ex(402, `{"error":{"message":"You asked for 900 tokens and can only afford 0. Buy credits.","code":402}}`)},
	{ID: "text.request_funds", Status: st("2xx", "402", "403"), Text: []string{"can only afford", "prompt tokens limit exceeded", "requires more credits, or fewer"},
		Scope: request, Kind: billing, soft: true, Why: "the balance pays for a smaller request, so the key is not dead",
		Examples: ex(402, `{"error":{"message":"You asked for 900 tokens but can only afford 120.","code":402}}`)},
	{ID: "text.option_not_granted", Status: st("2xx", "400", "403", "429"), Text: []string{"credits are required for * mode", "is required for long context", "usage is required for", "beta is not", "not yet available for this subscription", "not * available for this subscription"},
		Scope: request, Kind: permission, soft: true, Why: "an option of the request is not in the plan; without it the request passes",
		Examples: ex(429, `{"type":"error","error":{"type":"rate_limit_error","message":"Credits are required for turbo mode."}}`)},
}

// shapeRules keep a complaint that points into the request from being read as anything else:
// its words may be the caller's.
var shapeRules = []Rule{
	{ID: "request.capability_code", Status: st("2xx", "400", "404", "405", "415", "422", "501"), Code: []string{"unsupported_parameter", "unsupported_value", "extra_forbidden", "unsupported_*", "unknown_parameter", "invalid_message", "*not_supported_for*", "operation_not_supported", "unimplemented", "integer_above_max_value", "integer_below_min_value"},
		Not:   []string{"must be verified"},
		Scope: request, Kind: invalid, Why: "this model or provider lacks a parameter that others have",
		Examples: ex(400, `{"error":{"code":"unsupported_parameter","message":"No such knob here.","param":"top_k"}}`)},
	{ID: "request.capability", Status: st("2xx", "400", "404", "405", "415", "422", "501"), Text: []string{
		"is not supported with this model", "not supported on this model", "not supported for this model", "not supported by this model", "not supported in * for this model", "is not supported for this operation", "not supported for this endpoint", "does not support", "doesn't support", "do not support", "don't support",
		"is unsupported for", "support image input", "that support tool", "no endpoints found that support", "unsupported parameter", "unsupported value", "unsupported content", "not supported in the", "not a chat model", "is not enabled for", "unknown name", "cannot find field", "not permitted", "unrecognized request argument", "unknown parameter", "unexpected keyword", "only the default", "only supports", "only supported",
		"failed to deserialize", "invalid type: ", "must have role", "roles must alternate", "last message must", "first message must", "maximum allowed number of output tokens", "exceeds the model limit", "maximum tokens you requested", "max_tokens is too large", "please use the /v1/", "not compatible with", "thinking is not supported", "does not work with the specified model"},
		Not:   []string{"model * does not support this api key"},
		Scope: request, Kind: invalid, Why: "the same, in words: a live model that cannot do what was asked",
		Examples: ex(400, `{"error":{"message":"m-1 does not support tools"}}`)},
	{ID: "request.pointed", Status: st("2xx", "400", "413", "415", "422"), facts: isShape,
		Scope: client, Kind: invalid, Why: "the complaint points at a field of the request, and may repeat the prompt",
		Examples: ex(422, `{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required","input":"model not found"}]}`)},
}
