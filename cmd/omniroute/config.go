package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"omniroute/internal/config"
	"omniroute/internal/livecheck"
	"omniroute/internal/route"
	"omniroute/internal/server"
)

func checkCommand() *cobra.Command {
	var file string
	var live, strict bool
	c := &cobra.Command{
		Use: "check", Short: "Check the configuration", Args: atMost(0),
		Long: "Checks the configuration and reports everything that is wrong with it, each with its place. It starts nothing.\n" +
			"It also warns of what is right by itself and does not do what one may believe: fallbacks that fail together,\n" +
			"options without effect, deadlines that come too soon. With --strict a warning is a failure.\n" +
			"With --live it also asks a model of every connection one tiny question, which costs a few tokens each, and tells\n" +
			"what is wrong with those that do not answer. No state is touched.",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, warnings, err := server.Find(file).Check()
			for _, w := range warnings {
				fmt.Fprintln(c.ErrOrStderr(), w)
			}
			if err != nil {
				return err
			}
			connections := 0
			for _, p := range cfg.Providers {
				connections += len(p.Connections)
			}
			listens := cfg.Listen.String()
			if cfg.Metrics != (config.Address{}) {
				listens += ", and for /metrics on " + cfg.Metrics.String()
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is fine: %s, %s, %s, %s; it listens on %s\n", cfg.File,
				count(len(cfg.Providers), "provider"), count(connections, "connection"), count(len(cfg.Combos), "combo"),
				count(len(warnings), "warning"), listens)
			if strict && len(warnings) > 0 {
				return fmt.Errorf("%s, and --strict was given", count(len(warnings), "warning"))
			}
			if live {
				return checkLive(c, cfg)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", configHelp)
	c.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	c.Flags().BoolVar(&live, "live", false, "make one tiny call per connection")
	return c
}

func checkLive(c *cobra.Command, cfg *config.Config) error {
	rules, err := route.Classifier(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := interruptible(c)
	defer cancel()
	if cfg.Store.Kind == config.StoreRedis {
		server, err := server.CheckShared(ctx, cfg.Store.Redis)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s answers\n", server)
	}
	results := livecheck.Run(ctx, cfg, rules, livecheck.Options{})
	if err := livecheck.Write(c.OutOrStdout(), results); err != nil {
		return err
	}
	if bad := livecheck.Failed(results); bad > 0 {
		return fmt.Errorf("%d of %s cannot be used as they are", bad, count(len(results), "connection"))
	}
	return nil
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented configuration for the keys in the environment", Args: atMost(1),
		RunE: func(c *cobra.Command, given []string) error {
			file := server.DefaultFile
			if len(given) > 0 {
				file = given[0]
			}
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s is there already and was left as it is; name another file", file)
			}
			if err != nil {
				return fmt.Errorf("the configuration cannot be written: %w", err)
			}
			_, err = f.Write(config.Init(os.LookupEnv))
			if err := errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("the configuration cannot be written: %w", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "wrote %s; look at it, then run `omniroute check` and `omniroute serve`\n", file)
			return nil
		},
	}
}

func keyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Make a client key", Args: atMost(0),
		Long: "Prints a new client key, and the form of it for client_keys from which nobody can read the key.",
		RunE: func(c *cobra.Command, _ []string) error {
			random := make([]byte, 32)
			_, _ = rand.Read(random) // it never fails
			text := "or-" + base64.RawURLEncoding.EncodeToString(random)
			key, err := config.ParseClientKey(text)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "key for the client:  %s\nfor client_keys:     %s\n", text, key.Hashed())
			return nil
		},
	}
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration", Args: atMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := config.SchemaJSON()
			if err == nil {
				_, err = c.OutOrStdout().Write(b)
			}
			return err
		},
	}
}

func backupCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "backup FILE", Short: "Copy the store to a new file, while the gateway runs or not", Args: named("the FILE to write"),
		RunE: func(c *cobra.Command, given []string) error {
			cfg, _, err := server.Find(file).Look()
			if err != nil {
				return err
			}
			ctx, cancel := interruptible(c)
			defer cancel()
			from, err := server.Backup(ctx, cfg, given[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "copied %s to %s\n", from, given[0])
			return nil
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", configHelp)
	return c
}
