package main

import (
	"github.com/spf13/cobra"

	"omniroute/internal/server"
)

func serveCommand() *cobra.Command {
	var file, listen string
	var demo bool
	var logs logging
	c := &cobra.Command{
		Use: "serve", Short: "Run the gateway", Args: atMost(0),
		Long: "Runs the gateway until Ctrl-C or SIGTERM; running requests may then finish (shutdown_grace).\n" +
			"A changed configuration file is taken over without dropping a request; SIGHUP does the same.",
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case demo && file != "":
				return wrong(c, "--demo has a configuration of its own; leave -c out")
			case !demo && listen != "":
				return wrong(c, "--listen is for --demo; otherwise set `listen` in the configuration")
			}
			log, err := logs.logger(c, c.ErrOrStderr())
			if err != nil {
				return err
			}
			if demo {
				return serveDemo(c.Context(), c.OutOrStdout(), log, listen)
			}
			return server.Run(c.Context(), server.Options{Source: server.Find(file), Version: versionText(), Logger: log}, nil)
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", configHelp)
	c.Flags().BoolVar(&demo, "demo", false, "run with simulated providers that fail on a schedule; needs no key")
	c.Flags().StringVar(&logs.level, "log-level", "info", "log lines of this `LEVEL` and above: "+logLevels)
	c.Flags().StringVar(&logs.format, "log-format", "auto", "`FORMAT` of the log: "+logFormats+" (auto: for people on a terminal, text elsewhere)")
	c.Flags().StringVar(&listen, "listen", "", "where the demo listens, as `HOST:PORT` (default 127.0.0.1:20128)")
	return c
}
