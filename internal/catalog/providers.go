package catalog

import "time"

// Timeouts by how a service spends the time before the first word.
const (
	thinking  = 3 * time.Minute  // reasons silently before it speaks
	research  = 5 * time.Minute  // searches and reads for minutes
	loading   = 4 * time.Minute  // reads gigabytes of weights from disk when the model was not in memory
	wholeSlow = 10 * time.Minute // a whole answer of any of these
)

// openai is the endpoint of a service that speaks chat completions only.
func openai(base string) []Endpoint { return []Endpoint{{OpenAI, base, Bearer}} }

// withAnthropic is the endpoints of a service that also speaks Anthropic's dialect elsewhere.
func withAnthropic(base, anthropic string) []Endpoint {
	return []Endpoint{{OpenAI, base, Bearer}, {Anthropic, anthropic, XAPIKey}}
}

var everyModelLoads = []Timeout{{"*", loading, wholeSlow}}

var providers = []*Provider{
	{
		ID: "openai", Title: "OpenAI",
		Endpoints:    []Endpoint{{OpenAI, "https://api.openai.com/v1", Bearer}, {Responses, "https://api.openai.com/v1", Bearer}},
		KeyVariables: []string{"OPENAI_API_KEY"},
		Models:       []Pattern{"gpt-*", "o#*", "chatgpt-*", "codex-*", "text-embedding-*", "omni-moderation-*", "dall-e-*", "whisper-*", "tts-*", "sora-*", "davinci-*", "babbage-*"},
		Timeouts:     []Timeout{{"o#*-deep-research*", research, wholeSlow}, {"*-pro*", thinking, wholeSlow}, {"o#*", thinking, wholeSlow}},
	},
	{
		ID: "anthropic", Title: "Anthropic",
		Aliases:      []string{"claude"},
		Endpoints:    []Endpoint{{Anthropic, "https://api.anthropic.com/v1", XAPIKey}, {OpenAI, "https://api.anthropic.com/v1", Bearer}},
		KeyVariables: []string{"ANTHROPIC_API_KEY"},
		Models:       []Pattern{"claude-*"},
	},
	{
		ID: "gemini", Title: "Google Gemini",
		Aliases: []string{"google", "google-ai", "googleai"},
		Endpoints: []Endpoint{
			{Gemini, "https://generativelanguage.googleapis.com/v1beta", GoogAPIKey},
			{OpenAI, "https://generativelanguage.googleapis.com/v1beta/openai", Bearer},
		},
		KeyVariables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Models:       []Pattern{"gemini-*", "gemma-*", "imagen-*", "veo-*"},
		Timeouts:     []Timeout{{"gemini-*-pro*", thinking, wholeSlow}},
	},
	{
		ID: "azure", Title: "Azure OpenAI",
		Aliases:         []string{"azure-openai"},
		Endpoints:       []Endpoint{{OpenAI, "", APIKey}, {Responses, "", APIKey}},
		KeyVariables:    []string{"AZURE_OPENAI_API_KEY"},
		BaseURLVariable: "AZURE_OPENAI_ENDPOINT", BaseURLPath: "/openai/v1",
		BaseURLExample: "https://RESOURCE.openai.azure.com/openai/v1",
		Timeouts:       []Timeout{{"o#*", thinking, wholeSlow}},
	},
	{
		ID: "openrouter", Title: "OpenRouter",
		Endpoints:    []Endpoint{{OpenAI, "https://openrouter.ai/api/v1", Bearer}, {Anthropic, "https://openrouter.ai/api/v1", Bearer}},
		KeyVariables: []string{"OPENROUTER_API_KEY"},
		Timeouts:     []Timeout{{"*deep-research*", research, wholeSlow}, {"openai/o#*", thinking, wholeSlow}, {"*-pro*", thinking, wholeSlow}},
	},
	{
		ID: "groq", Title: "Groq",
		Endpoints:      openai("https://api.groq.com/openai/v1"),
		KeyVariables:   []string{"GROQ_API_KEY"},
		FreeCacheReads: true,
	},
	{
		ID: "mistral", Title: "Mistral AI",
		Endpoints:    openai("https://api.mistral.ai/v1"),
		KeyVariables: []string{"MISTRAL_API_KEY"},
		Models:       []Pattern{"mistral-*", "open-mistral-*", "open-mixtral-*", "codestral-*", "devstral-*", "magistral-*", "ministral-*", "pixtral-*", "voxtral-*"},
		Timeouts:     []Timeout{{"magistral-*", thinking, wholeSlow}},
	},
	{
		ID: "deepseek", Title: "DeepSeek",
		Endpoints:    withAnthropic("https://api.deepseek.com", "https://api.deepseek.com/anthropic/v1"),
		KeyVariables: []string{"DEEPSEEK_API_KEY"},
		Models:       []Pattern{"deepseek-*"},
		Timeouts:     []Timeout{{"*", thinking, wholeSlow}}, // queues instead of refusing, and keeps the line open meanwhile
	},
	{
		ID: "xai", Title: "xAI",
		Aliases:      []string{"x-ai", "grok"},
		Endpoints:    []Endpoint{{OpenAI, "https://api.x.ai/v1", Bearer}, {Responses, "https://api.x.ai/v1", Bearer}},
		KeyVariables: []string{"XAI_API_KEY"},
		Models:       []Pattern{"grok-*"},
		Timeouts:     []Timeout{{"grok-4*", thinking, wholeSlow}},
	},
	{
		ID: "together", Title: "Together AI",
		Aliases:      []string{"togetherai", "together-ai"},
		Endpoints:    openai("https://api.together.ai/v1"),
		KeyVariables: []string{"TOGETHER_API_KEY"},
	},
	{
		ID: "fireworks", Title: "Fireworks AI",
		Aliases:      []string{"fireworks-ai"},
		Endpoints:    []Endpoint{{OpenAI, "https://api.fireworks.ai/inference/v1", Bearer}, {Anthropic, "https://api.fireworks.ai/inference/v1", Bearer}},
		KeyVariables: []string{"FIREWORKS_API_KEY"},
		Models:       []Pattern{"accounts/fireworks/*"},
	},
	{
		ID: "cerebras", Title: "Cerebras",
		Endpoints:    openai("https://api.cerebras.ai/v1"),
		KeyVariables: []string{"CEREBRAS_API_KEY"},
	},
	{
		ID: "perplexity", Title: "Perplexity",
		// Its chat completions ended on 2026-09-27, and with them the names sonar, sonar-pro and the like: models are
		// now called perplexity/sonar or as others call them, so that no bare name says that it is meant.
		Endpoints:    []Endpoint{{Responses, "https://api.perplexity.ai/v1", Bearer}},
		KeyVariables: []string{"PERPLEXITY_API_KEY"},
		Timeouts:     []Timeout{{"*", thinking, wholeSlow}}, // searches before it speaks
	},
	{
		ID: "nvidia", Title: "NVIDIA NIM",
		Aliases:      []string{"nvidia-nim", "nim"},
		Endpoints:    openai("https://integrate.api.nvidia.com/v1"),
		KeyVariables: []string{"NVIDIA_API_KEY"},
	},
	{
		ID: "github-models", Title: "GitHub Models",
		Aliases: []string{"github"},
		Retired: "2026-07-30",
		// GITHUB_TOKEN is in every workflow and says nothing about models, so it is not asked for.
		Endpoints:    openai("https://models.github.ai/inference"),
		KeyVariables: []string{"GITHUB_MODELS_TOKEN"},
	},
	{
		ID: "huggingface", Title: "Hugging Face router",
		Aliases:      []string{"hf"},
		Endpoints:    openai("https://router.huggingface.co/v1"),
		KeyVariables: []string{"HF_TOKEN"},
	},
	{
		ID: "cohere", Title: "Cohere (compatibility API)",
		Endpoints:    openai("https://api.cohere.ai/compatibility/v1"),
		KeyVariables: []string{"COHERE_API_KEY", "CO_API_KEY"},
		Models:       []Pattern{"command-*", "c4ai-*", "embed-english-*", "embed-multilingual-*", "embed-v#*"},
	},
	{
		ID: "moonshot", Title: "Moonshot AI (Kimi)",
		Aliases:      []string{"moonshotai", "kimi"},
		Endpoints:    withAnthropic("https://api.moonshot.ai/v1", "https://api.moonshot.ai/anthropic/v1"),
		KeyVariables: []string{"MOONSHOT_API_KEY"},
		Models:       []Pattern{"kimi-*", "moonshot-*"},
		Timeouts:     []Timeout{{"*thinking*", thinking, wholeSlow}},
	},
	{
		ID: "zhipu", Title: "Zhipu AI (BigModel)",
		Aliases:      []string{"zhipuai", "bigmodel"},
		Endpoints:    withAnthropic("https://open.bigmodel.cn/api/paas/v4", "https://open.bigmodel.cn/api/anthropic/v1"),
		KeyVariables: []string{"ZHIPUAI_API_KEY", "ZHIPU_API_KEY"},
		Models:       []Pattern{"glm-*", "cogview-*", "cogvideox-*"},
	},
	{
		ID: "zai", Title: "Z.ai",
		Aliases:      []string{"z-ai"},
		Endpoints:    withAnthropic("https://api.z.ai/api/paas/v4", "https://api.z.ai/api/anthropic/v1"),
		KeyVariables: []string{"ZAI_API_KEY", "Z_AI_API_KEY"},
		Models:       []Pattern{"glm-*"},
	},
	{
		ID: "dashscope", Title: "Alibaba DashScope (Qwen)",
		Aliases:      []string{"qwen", "alibaba"},
		Endpoints:    withAnthropic("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "https://dashscope-intl.aliyuncs.com/apps/anthropic/v1"),
		KeyVariables: []string{"DASHSCOPE_API_KEY"},
		Models:       []Pattern{"qwen-*", "qwen#*", "qwq-*", "qvq-*"},
		Timeouts:     []Timeout{{"qwq-*", thinking, wholeSlow}, {"*thinking*", thinking, wholeSlow}},
	},
	{
		ID: "minimax", Title: "MiniMax",
		Endpoints:    withAnthropic("https://api.minimax.io/v1", "https://api.minimax.io/anthropic/v1"),
		KeyVariables: []string{"MINIMAX_API_KEY"},
		Models:       []Pattern{"minimax-*", "abab*"},
	},
	{
		ID: "siliconflow", Title: "SiliconFlow",
		Endpoints:    openai("https://api.siliconflow.com/v1"),
		KeyVariables: []string{"SILICONFLOW_API_KEY"},
	},
	{
		ID: "sambanova", Title: "SambaNova",
		Endpoints:    openai("https://api.sambanova.ai/v1"),
		KeyVariables: []string{"SAMBANOVA_API_KEY"},
	},
	{
		ID: "deepinfra", Title: "DeepInfra",
		Endpoints:    openai("https://api.deepinfra.com/v1/openai"),
		KeyVariables: []string{"DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"},
	},
	{
		ID: "nebius", Title: "Nebius Token Factory",
		Endpoints:    openai("https://api.tokenfactory.nebius.com/v1"),
		KeyVariables: []string{"NEBIUS_API_KEY"},
	},
	{
		ID: "vercel", Title: "Vercel AI Gateway",
		Aliases:      []string{"vercel-ai-gateway"},
		Endpoints:    withAnthropic("https://ai-gateway.vercel.sh/v1", "https://ai-gateway.vercel.sh/v1"),
		KeyVariables: []string{"AI_GATEWAY_API_KEY"},
	},
	{
		ID: "scaleway", Title: "Scaleway Generative APIs",
		Endpoints:    openai("https://api.scaleway.ai/v1"),
		KeyVariables: []string{"SCALEWAY_API_KEY"},
	},
	{
		ID: "ollama", Title: "Ollama",
		Endpoints: openai("http://127.0.0.1:11434/v1"),
		Timeouts:  everyModelLoads,
	},
	{
		ID: "vllm", Title: "vLLM",
		Endpoints: openai("http://127.0.0.1:8000/v1"),
	},
	{
		ID: "lmstudio", Title: "LM Studio",
		Aliases:   []string{"lm-studio"},
		Endpoints: openai("http://127.0.0.1:1234/v1"),
		Timeouts:  everyModelLoads,
	},
	{
		ID: "llamacpp", Title: "llama.cpp server",
		Aliases:   []string{"llama.cpp", "llama-cpp"},
		Endpoints: openai("http://127.0.0.1:8080/v1"),
		Timeouts:  everyModelLoads,
	},
	{
		ID: "sglang", Title: "SGLang",
		Endpoints: openai("http://127.0.0.1:30000/v1"),
	},
}
