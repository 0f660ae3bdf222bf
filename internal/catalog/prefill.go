package catalog

// Prefill is how a model is asked to go on from the beginning of an answer.
type Prefill struct {
	Way PrefillWay
	// BaseURL is where it can be asked so, empty where everything else is asked too.
	BaseURL string
}

// PrefillWay says what tells an upstream that the last message, which is the assistant's, is the
// beginning of the answer.
type PrefillWay string

// The ways.
const (
	PrefillNone    PrefillWay = "none"                   // it cannot be asked
	PrefillPlain   PrefillWay = "plain"                  // the message itself
	PrefillPrefix  PrefillWay = "prefix"                 // prefix: true in the message
	PrefillPartial PrefillWay = "partial"                // partial: true in the message
	PrefillFinal   PrefillWay = "continue_final_message" // that, true, in the request, and add_generation_prompt: false
)

// PrefillWays returns every way.
func PrefillWays() []PrefillWay {
	return []PrefillWay{PrefillNone, PrefillPlain, PrefillPrefix, PrefillPartial, PrefillFinal}
}

// prefillRule says which models of a provider can be asked, in one of its dialects.
type prefillRule struct {
	dialect Dialect
	models  Pattern
	Prefill
}

// prefills lists what vendors document. Who is not here is not asked: a model that takes the
// beginning for an earlier turn answers anew, and nobody could tell.
var prefills = map[string][]prefillRule{
	// Claude 4.6 and later refuse.
	"anthropic": {
		{Anthropic, "claude-2*", Prefill{Way: PrefillPlain}},
		{Anthropic, "claude-3*", Prefill{Way: PrefillPlain}},
		{Anthropic, "claude-*-4", Prefill{Way: PrefillPlain}},
		{Anthropic, "claude-*-4-20*", Prefill{Way: PrefillPlain}},
		{Anthropic, "claude-*-4-0*", Prefill{Way: PrefillPlain}},
		{Anthropic, "claude-*-4-1*", Prefill{Way: PrefillPlain}},
		{Anthropic, "claude-*-4-5*", Prefill{Way: PrefillPlain}},
	},
	"openrouter": {
		{OpenAI, "anthropic/claude-3*", Prefill{Way: PrefillPlain}},
		{OpenAI, "anthropic/claude-*-4", Prefill{Way: PrefillPlain}},
		{OpenAI, "anthropic/claude-*-4.1", Prefill{Way: PrefillPlain}},
		{OpenAI, "anthropic/claude-*-4.5", Prefill{Way: PrefillPlain}},
	},
	"mistral": {
		{OpenAI, "magistral-*", Prefill{Way: PrefillNone}}, // thinks
		{OpenAI, "*", Prefill{Way: PrefillPrefix}},
	},
	"deepseek": {{OpenAI, "deepseek-chat", Prefill{PrefillPrefix, "https://api.deepseek.com/beta"}}},
	"moonshot": {
		{OpenAI, "*thinking*", Prefill{Way: PrefillNone}},
		{OpenAI, "*", Prefill{Way: PrefillPartial}},
	},
	"dashscope": {
		{OpenAI, "*thinking*", Prefill{Way: PrefillNone}},
		{OpenAI, "qwen-max*", Prefill{Way: PrefillPartial}},
		{OpenAI, "qwen-plus*", Prefill{Way: PrefillPartial}},
		{OpenAI, "qwen-flash*", Prefill{Way: PrefillPartial}},
		{OpenAI, "qwen-turbo*", Prefill{Way: PrefillPartial}},
		{OpenAI, "qwen#*", Prefill{Way: PrefillPartial}},
	},
	"vllm": {{OpenAI, "*", Prefill{Way: PrefillFinal}}},
}

// PrefillOf returns how a model is asked to go on, PrefillNone where nothing is known.
func (p *Provider) PrefillOf(d Dialect, model string) Prefill {
	for _, r := range prefills[p.ID] {
		if r.dialect == d && r.models.Match(model) {
			return r.Prefill
		}
	}
	return Prefill{Way: PrefillNone}
}
