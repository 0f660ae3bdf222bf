package gateway

import (
	"net/http"
	"slices"

	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/dialect"
	"omniroute/internal/route"
)

// client returns whose key a request carries, nil where nothing depends on it.
func (g *Gateway) client(r *http.Request) *config.Client {
	cfg := g.o.Router().Config()
	if g.o.Trusted || !slices.ContainsFunc(cfg.ClientKeys, (*config.Client).Restricted) {
		return nil
	}
	c, _ := cfg.Client(presentedKey(r))
	return c
}

// resolve returns the route of a name, and which of its targets the caller may not use. What a caller
// may not have is as unknown to it as what does not exist. asked is the name that it has sent, which
// differs from name where the request goes on from an earlier answer; "" where that answer's id
// alone says what it wants.
func (g *Gateway) resolve(r *http.Request, d dialect.Dialect, name, asked string) (*route.Route, []bool, error) {
	resolve := g.o.Router().Resolve
	if g.o.Resolve != nil {
		resolve = g.o.Resolve
	}
	to, err := resolve(catalog.Dialect(d.Name()), name)
	c := g.client(r)
	if !c.Restricted() {
		return to, nil, err
	}
	if err == nil {
		if barred, ok := to.Narrowed(c, asked == "" || c.MayAsk(asked)); ok {
			return to, barred, nil
		}
	}
	var near []string
	for _, m := range g.listed(c) {
		near = append(near, m.id)
	}
	return nil, nil, config.NotFound(name, near)
}
