package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"omniroute/internal/admin"
	"omniroute/internal/config"
	"omniroute/internal/server"
)

// where says which running gateway a command asks.
type where struct{ file, url string }

func (w *where) flags(c *cobra.Command) {
	c.Flags().StringVarP(&w.file, "config", "c", "", "ask the server of this configuration `FILE`; default as for serve")
	c.Flags().StringVar(&w.url, "url", "", "ask the server at this `URL`, with OMNIROUTE_ADMIN_TOKEN")
}

// usualAddress is where a gateway listens, and so the demo, when nothing says otherwise.
var usualAddress = config.Address{Network: "tcp", Address: "127.0.0.1:20128"}

// client returns a client of that gateway.
func (w *where) client(c *cobra.Command) (*admin.Client, error) {
	token := config.NewSecret(os.Getenv("OMNIROUTE_ADMIN_TOKEN"))
	if w.url != "" {
		if w.file != "" {
			return nil, wrong(c, "-c and --url name two servers; leave one out")
		}
		return admin.NewClientURL(w.url, token)
	}
	cfg, known, err := server.Find(w.file).Look()
	switch {
	case errors.Is(err, config.ErrNoKeys):
		return admin.NewClient(usualAddress, nil, token) // the demo's
	case err != nil:
		return nil, err
	}
	if known && !cfg.AdminToken.Empty() {
		token = cfg.AdminToken
	}
	return admin.NewClient(cfg.Listen, cfg.TLS, token)
}
