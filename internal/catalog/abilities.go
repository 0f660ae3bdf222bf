package catalog

import "strings"

// Ability is what is known of the limits of a model. Zero values are not known.
type Ability struct {
	Models Pattern
	// Context is the window, MaxOutput the longest answer, in tokens.
	Context, MaxOutput int64
	// NoImages, NoTools: it does not see images or call tools.
	NoImages, NoTools bool
}

// abilities has the first match first. Only what is documented and old enough not to change is
// here; a window that may be larger by the account or by a header has the larger value.
var abilities = []Ability{
	{"gpt-5-chat*", 128000, 16384, false, false},
	{"gpt-5*", 400000, 128000, false, false},
	{"gpt-4.1*", 1047576, 32768, false, false},
	{"gpt-4o*", 128000, 16384, false, false},
	{"gpt-4-turbo*", 128000, 4096, false, false},
	{"gpt-4-32k*", 32768, 0, true, false},
	{"gpt-4", 8192, 0, true, false},
	{"gpt-4-0613", 8192, 0, true, false},
	{"gpt-3.5-turbo*", 16385, 4096, true, false},
	{"o1-mini*", 128000, 65536, true, false},
	{"o1-preview*", 128000, 32768, true, false},
	{"o3-mini*", 200000, 100000, true, false},
	{"o#*", 200000, 100000, false, false},
	{"text-embedding-3-*", 8192, 0, true, false},
	{"text-embedding-ada-002", 8192, 0, true, false},
	{"claude-3-opus*", 200000, 4096, false, false},
	{"claude-3-haiku*", 200000, 4096, false, false},
	{"claude-3-5-*", 200000, 8192, false, false},
	{"claude-3-7-*", 200000, 128000, false, false},
	{"claude-*", 1000000, 0, false, false},
	{"gemini-1.5-pro*", 2097152, 8192, false, false},
	{"gemini-1.5-*", 1048576, 8192, false, false},
	{"gemini-2.0-*", 1048576, 0, false, false},
	{"gemini-2.5-*", 1048576, 65536, false, false},
	{"deepseek-chat", 131072, 0, true, false},
	{"deepseek-reasoner", 131072, 0, true, false},
	{"codestral-*", 262144, 0, true, false},
	{"llama-3.1-8b-instant", 131072, 0, true, false},
	{"llama-3.3-70b-versatile", 131072, 32768, true, false},
	{"command-r*", 131072, 0, true, false},
	{"sonar", 131072, 0, false, true},
	{"sonar-pro", 204800, 0, false, true},
}

// AbilityOf returns what is known of a model of the provider. Resellers put a vendor's name before
// the model's. Of what runs on the user's own machine nothing is known: its window is a setting.
func (p *Provider) AbilityOf(model string) Ability {
	if p.Local() {
		return Ability{}
	}
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
	}
	for _, a := range abilities {
		if a.Models.Match(model) {
			return a
		}
	}
	return Ability{}
}
