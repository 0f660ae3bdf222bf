package classify

import (
	"strings"
	"time"

	"omniroute/resilience"
)

// traits is what is known of a provider beyond its rules.
type traits struct {
	rate     resilience.Scope // what a limit that names nothing is keyed by
	load     resilience.Scope // what shares the capacity that an overload speaks of
	zone     string           // of dates that it writes without one
	reseller bool             // it relays other providers' answers
	selfHost bool             // one connection is one machine
}

const (
	perModel = resilience.ScopeModel
	perKey   = resilience.ScopeConnection
	perHost  = resilience.ScopeProvider
)

var defaultTraits = traits{rate: perKey, load: perHost}

// known lists providers and the intermediaries that answer in their place.
var known = map[string]traits{
	"openai":                {rate: perKey, load: perHost},
	"openai-codex":          {rate: perKey, load: perHost},
	"azure-openai":          {rate: perModel, load: perHost},
	"anthropic":             {rate: perKey, load: perHost},
	"gemini":                {rate: perModel, load: perHost},
	"gemini-code-assist":    {rate: perModel, load: perModel},
	"vertex-ai":             {rate: perModel, load: perModel},
	"bedrock":               {rate: perModel, load: perModel},
	"groq":                  {rate: perModel, load: perModel},
	"mistral":               {rate: perKey, load: perModel},
	"deepseek":              {rate: perKey, load: perHost},
	"openrouter":            {rate: perKey, load: perModel, reseller: true},
	"opencode-zen":          {rate: perModel, load: perModel, reseller: true},
	"xai":                   {rate: perModel, load: perModel},
	"xai-grok-build":        {rate: perModel, load: perModel},
	"cerebras":              {rate: perModel, load: perModel},
	"together":              {rate: perModel, load: perModel},
	"fireworks":             {rate: perModel, load: perModel},
	"litellm":               {rate: perModel, load: perModel, reseller: true},
	"one-api":               {rate: perModel, load: perModel, reseller: true},
	"modelscope":            {rate: perModel, load: perModel, reseller: true},
	"cohere":                {rate: perKey, load: perHost},
	"perplexity":            {rate: perKey, load: perHost},
	"huggingface":           {rate: perKey, load: perModel},
	"cloudflare-workers-ai": {rate: perKey, load: perModel},
	"nvidia-nim":            {rate: perModel, load: perModel},
	"github-copilot":        {rate: perModel, load: perModel},
	"github-models":         {rate: perModel, load: perModel},
	"moonshot":              {rate: perKey, load: perHost},
	"zhipu":                 {rate: perKey, load: perModel, zone: "Asia/Shanghai"},
	"dashscope":             {rate: perModel, load: perModel, zone: "Asia/Shanghai"},
	"qwen-oauth":            {rate: perKey, load: perModel, zone: "Asia/Shanghai"},
	"minimax":               {rate: perKey, load: perHost, zone: "Asia/Shanghai"},
	"siliconflow":           {rate: perModel, load: perModel, zone: "Asia/Shanghai"},
	"volcengine-ark":        {rate: perModel, load: perHost, zone: "Asia/Shanghai"},
	"sensenova":             {rate: perModel, load: perModel, zone: "Asia/Shanghai"},
	"baidu-qianfan":         {rate: perKey, load: perModel, zone: "Asia/Shanghai"},
	"ollama":                {rate: perKey, load: perModel, selfHost: true},
	"ollama-cloud":          {rate: perKey, load: perModel},
	"vllm":                  {rate: perKey, load: perKey, selfHost: true},
	"llamacpp":              {rate: perKey, load: perModel, selfHost: true},
	"lmstudio":              {rate: perKey, load: perModel, selfHost: true},
	"sambanova":             {rate: perModel, load: perModel},
	"deepinfra":             {rate: perModel, load: perModel},
	"nebius":                {rate: perModel, load: perModel},
	"scaleway":              {rate: perModel, load: perModel},
	"vercel":                {rate: perModel, load: perHost},
}

// aliases are other names under which people configure the same upstreams.
var aliases = map[string]string{
	"azure": "azure-openai", "azureopenai": "azure-openai", "codex": "openai-codex", "chatgpt": "openai-codex",
	"google": "gemini", "google-ai": "gemini", "googleai": "gemini", "vertex": "vertex-ai", "google-vertex": "vertex-ai", "vertexai": "vertex-ai",
	"code-assist": "gemini-code-assist", "gemini-cli": "gemini-code-assist", "antigravity": "gemini-code-assist",
	"claude": "anthropic", "aws-bedrock": "bedrock", "amazon-bedrock": "bedrock", "kiro": "kiro", "grok": "xai", "x-ai": "xai",
	"togetherai": "together", "together-ai": "together", "fireworks-ai": "fireworks", "hf": "huggingface", "workers-ai": "cloudflare-workers-ai",
	"nvidia": "nvidia-nim", "nim": "nvidia-nim", "copilot": "github-copilot", "kimi": "moonshot", "moonshotai": "moonshot",
	"glm": "zhipu", "z-ai": "zhipu", "zai": "zhipu", "bigmodel": "zhipu", "zhipuai": "zhipu", "qwen": "dashscope", "alibaba": "dashscope", "aliyun": "dashscope", "bailian": "dashscope",
	"volcengine": "volcengine-ark", "ark": "volcengine-ark", "doubao": "volcengine-ark", "qianfan": "baidu-qianfan", "baidu": "baidu-qianfan", "wenxin": "baidu-qianfan",
	"vercel-ai-gateway": "vercel", "zen": "opencode-zen", "opencode": "opencode-zen", "new-api": "one-api", "newapi": "one-api", "oneapi": "one-api",
	"llama.cpp": "llamacpp", "llama-cpp": "llamacpp", "lm-studio": "lmstudio",
}

// canonicalProvider maps a configured name to the one that rules use.
func canonicalProvider(name string) string {
	if _, ok := known[name]; ok {
		return name
	}
	n := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	if a, ok := aliases[n]; ok {
		return a
	}
	return n
}

// RateLimitScope returns what a rate limit of the provider means that names neither a model nor an
// account: ScopeModel or ScopeConnection. It is what the zero Input.RateLimitScope stands for. Of a
// provider that nobody knows it is the connection.
//
// OpenAI's limits are per model, and its answers name the model; one that names none is about the
// account.
func RateLimitScope(provider string) resilience.Scope { return traitsOf(provider).rate }

func traitsOf(provider string) traits {
	if t, ok := known[canonicalProvider(provider)]; ok {
		return t
	}
	return defaultTraits
}

// location returns a zone by name, UTC when it is unknown. The zone database is embedded, so
// that the host's does not matter.
func location(name string) *time.Location {
	switch name {
	case "", "UTC":
		return time.UTC
	case "Asia/Shanghai":
		return shanghai
	case "America/Los_Angeles":
		return pacific
	}
	if l, err := time.LoadLocation(name); err == nil {
		return l
	}
	return time.UTC
}

var shanghai, pacific = mustZone("Asia/Shanghai"), mustZone("America/Los_Angeles")

func mustZone(name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil {
		panic("classify: the embedded zone database lacks " + name)
	}
	return l
}
