package catalog

import "strings"

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	// Input is for tokens of the prompt, Cached for those that the provider still had, Output for those
	// of the answer, thoughts included.
	Input, Cached, Output float64
}

// priced is the price of the models of a pattern.
type priced struct {
	models Pattern
	Price
}

// PriceOf returns the list price of a model, false where it is not known. Services on the user's own
// machine cost nothing; a reseller's vendor/model costs what the vendor takes.
func (p *Provider) PriceOf(model string) (Price, bool) {
	if p.Local() {
		return Price{}, true
	}
	if p.ID == "openrouter" {
		vendor, name, _ := strings.Cut(model, "/")
		if strings.HasSuffix(name, ":free") {
			return Price{}, true
		}
		if v := Lookup(vendor); v != nil && v != p {
			name, _, _ = strings.Cut(name, ":")
			return v.PriceOf(strings.ReplaceAll(name, ".", "-"))
		}
		return Price{}, false
	}
	id := p.ID
	if id == "azure" {
		id = "openai"
	}
	for _, k := range prices[id] {
		if k.models.Match(model) || k.models.Match(strings.ReplaceAll(model, ".", "-")) {
			return k.Price, true
		}
	}
	return Price{}, false
}

// prices are list prices without discounts for batches or long prompts, by provider. The first match
// counts. They serve to tell cheap from dear, and no bill is made of them; a configuration may have
// its own. Dots in names are dashes here.
var prices = map[string][]priced{
	"openai": {
		{"gpt-5-#-pro*", Price{21, 21, 168}},
		{"gpt-5-pro*", Price{15, 15, 120}},
		{"gpt-5-20*", Price{1.25, .125, 10}},
		{"gpt-5-nano*", Price{.05, .005, .4}},
		{"gpt-5-mini*", Price{.25, .025, 2}},
		{"gpt-5-1-codex-mini*", Price{.25, .025, 2}},
		{"gpt-5-4-mini*", Price{.75, .075, 4.5}},
		{"gpt-5-4*", Price{2.5, .25, 15}},
		{"gpt-5-2*", Price{1.75, .175, 14}},
		{"gpt-5-1*", Price{1.25, .125, 10}},
		{"gpt-5", Price{1.25, .125, 10}},
		{"gpt-5-codex*", Price{1.25, .125, 10}},
		{"gpt-5-chat*", Price{1.25, .125, 10}},
		{"gpt-4-1-nano*", Price{.1, .025, .4}},
		{"gpt-4-1-mini*", Price{.4, .1, 1.6}},
		{"gpt-4-1*", Price{2, .5, 8}},
		{"gpt-4o-mini", Price{.15, .075, .6}},
		{"gpt-4o-mini-20*", Price{.15, .075, .6}},
		{"gpt-4o", Price{2.5, 1.25, 10}},
		{"gpt-4o-20*", Price{2.5, 1.25, 10}},
		{"o4-mini", Price{1.1, .275, 4.4}},
		{"o4-mini-20*", Price{1.1, .275, 4.4}},
		{"o3-mini*", Price{1.1, .55, 4.4}},
		{"o3", Price{2, .5, 8}},
		{"o3-20*", Price{2, .5, 8}},
		{"o1", Price{15, 7.5, 60}},
		{"o1-20*", Price{15, 7.5, 60}},
		{"text-embedding-3-small", Price{.02, .02, 0}},
		{"text-embedding-3-large", Price{.13, .13, 0}},
	},
	"anthropic": {
		{"claude-opus-4-5*", Price{5, .5, 25}},
		{"claude-opus-4-6*", Price{5, .5, 25}},
		{"claude-opus-4", Price{15, 1.5, 75}},
		{"claude-opus-4-0*", Price{15, 1.5, 75}},
		{"claude-opus-4-1*", Price{15, 1.5, 75}},
		{"claude-opus-4-20*", Price{15, 1.5, 75}},
		{"claude-sonnet-4*", Price{3, .3, 15}},
		{"claude-haiku-4-5*", Price{1, .1, 5}},
		{"claude-3-7-sonnet*", Price{3, .3, 15}},
		{"claude-3-5-sonnet*", Price{3, .3, 15}},
		{"claude-3-5-haiku*", Price{.8, .08, 4}},
		{"claude-3-haiku*", Price{.25, .03, 1.25}},
	},
	"gemini": {
		{"gemini-3-pro*", Price{2, .2, 12}},
		{"gemini-3-flash*", Price{.5, .05, 3}},
		{"gemini-2-5-pro*", Price{1.25, .125, 10}},
		{"gemini-2-5-flash-lite*", Price{.1, .01, .4}},
		{"gemini-2-5-flash", Price{.3, .03, 2.5}},
		{"gemini-2-5-flash-preview*", Price{.3, .03, 2.5}},
		{"gemini-2-0-flash-lite*", Price{.075, .075, .3}},
		{"gemini-2-0-flash*", Price{.1, .025, .4}},
	},
	"deepseek": {
		{"deepseek-chat", Price{.28, .028, .42}},
		{"deepseek-reasoner", Price{.28, .028, .42}},
	},
	"mistral": {
		{"mistral-large-latest", Price{.5, .5, 1.5}},
		{"mistral-medium*", Price{.4, .4, 2}},
		{"mistral-small*", Price{.1, .1, .3}},
		{"codestral*", Price{.3, .3, .9}},
		{"ministral-8b*", Price{.1, .1, .1}},
		{"ministral-3b*", Price{.04, .04, .04}},
	},
	"xai": {
		{"grok-4-fast*", Price{.2, .05, .5}},
		{"grok-4-1-fast*", Price{.2, .05, .5}},
		{"grok-code-fast*", Price{.2, .02, 1.5}},
		{"grok-4", Price{3, .75, 15}},
		{"grok-4-0*", Price{3, .75, 15}},
		{"grok-3-mini*", Price{.3, .075, .5}},
		{"grok-3", Price{3, .75, 15}},
	},
	"groq": {
		{"llama-3-3-70b-versatile", Price{.59, .59, .79}},
		{"llama-3-1-8b-instant", Price{.05, .05, .08}},
		{"openai/gpt-oss-120b", Price{.15, .075, .6}},
		{"openai/gpt-oss-20b", Price{.075, .0375, .3}},
		{"qwen/qwen3-32b", Price{.29, .29, .59}},
	},
	"cerebras": {
		{"llama3-1-8b", Price{.1, .1, .1}},
		{"gpt-oss-120b", Price{.35, .35, .75}},
	},
}
