package route

import (
	"omniroute/internal/config"
	"omniroute/internal/fit"
)

// abilities returns what is written down of a model: what the file says, else what is known of the
// name.
func abilities(p *config.Provider, model string) (c fit.Can) {
	if p.Known != nil && atHome(p) {
		a := p.Known.AbilityOf(model)
		c = fit.Can{Window: a.Context, MaxOutput: a.MaxOutput, NoImages: a.NoImages, NoTools: a.NoTools}
	}
	m := p.Model(model)
	if m == nil {
		return c
	}
	if m.Context > 0 {
		c.Window = int64(m.Context)
	}
	if m.MaxOutput > 0 {
		c.MaxOutput = int64(m.MaxOutput)
	}
	for _, x := range []struct {
		takes *bool
		not   *bool
	}{{m.Images, &c.NoImages}, {m.Tools, &c.NoTools}, {m.Schema, &c.NoSchema}} {
		if x.takes != nil {
			*x.not = !*x.takes
		}
	}
	return c
}

// atHome reports whether the provider is asked where it is known to be: behind another address the
// models of these names may be others.
func atHome(p *config.Provider) bool {
	known, ok := p.Known.Endpoint(p.Endpoints[0].Dialect)
	return ok && (known.BaseURL == "" || known.BaseURL == p.Endpoints[0].BaseURL)
}
