package catalog

import "testing"

func TestPrefillOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider string
		dialect  Dialect
		model    string
		want     PrefillWay
	}{
		{"anthropic", Anthropic, "claude-3-7-sonnet-20250219", PrefillPlain},
		{"anthropic", Anthropic, "claude-sonnet-4-20250514", PrefillPlain},
		{"anthropic", Anthropic, "claude-opus-4-1-20250805", PrefillPlain},
		{"anthropic", Anthropic, "claude-haiku-4-5", PrefillPlain},
		{"anthropic", Anthropic, "claude-opus-4-6", PrefillNone},
		{"anthropic", Anthropic, "claude-sonnet-5", PrefillNone},
		{"anthropic", OpenAI, "claude-haiku-4-5", PrefillNone},
		{"openrouter", OpenAI, "anthropic/claude-sonnet-4.5", PrefillPlain},
		{"openrouter", OpenAI, "anthropic/claude-opus-4.6", PrefillNone},
		{"openrouter", OpenAI, "openai/gpt-5.2", PrefillNone},
		{"openai", OpenAI, "gpt-4o", PrefillNone},
		{"mistral", OpenAI, "mistral-large-latest", PrefillPrefix},
		{"mistral", OpenAI, "magistral-medium-latest", PrefillNone},
		{"deepseek", OpenAI, "deepseek-chat", PrefillPrefix},
		{"deepseek", OpenAI, "deepseek-reasoner", PrefillNone},
		{"moonshot", OpenAI, "kimi-k2-0905-preview", PrefillPartial},
		{"moonshot", OpenAI, "kimi-k2-thinking", PrefillNone},
		{"dashscope", OpenAI, "qwen-max", PrefillPartial},
		{"vllm", OpenAI, "anything", PrefillFinal},
		{"ollama", OpenAI, "llama3", PrefillNone},
	} {
		if got := Lookup(c.provider).PrefillOf(c.dialect, c.model); got.Way != c.want {
			t.Errorf("%s %s in %s: %s, want %s", c.provider, c.model, c.dialect, got.Way, c.want)
		}
	}
	for id := range prefills {
		if p := Lookup(id); p == nil || p.ID != id {
			t.Errorf("%s is no provider's id", id)
		}
	}
}
