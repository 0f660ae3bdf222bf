package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"omniroute/internal/admin"
	"omniroute/resilience"
)

func statusCommand() *cobra.Command {
	var at where
	var watch, asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "Show what is out of service in a running gateway", Args: atMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if watch && asJSON {
				return wrong(c, "--watch is for people and --json for programs; leave one out")
			}
			client, err := at.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			ctx, cancel := interruptible(c)
			defer cancel()
			out := c.OutOrStdout()
			if watch {
				return watchStatus(ctx, out, client)
			}
			st, raw, err := client.Status(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				_, err = out.Write(raw)
				return err
			}
			styleFor(out).Status(out, st, client.Address())
			return nil
		},
	}
	at.flags(c)
	c.Flags().BoolVar(&watch, "watch", false, "show it live, until Ctrl-C")
	c.Flags().BoolVar(&asJSON, "json", false, "print the answer of the admin API")
	return c
}

func explainCommand() *cobra.Command {
	var at where
	var asJSON bool
	var q admin.ExplainRequest
	var body string
	c := &cobra.Command{
		Use: "explain MODEL", Short: "Show which targets a request for a model would try, and why not the others", Args: named("the MODEL, such as a combo or provider/model,"),
		RunE: func(c *cobra.Command, given []string) error {
			client, err := at.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			ctx, cancel := interruptible(c)
			defer cancel()
			q.Model = given[0]
			if body != "" {
				if q.Body, err = requestIn(c, body); err != nil {
					return err
				}
			}
			x, raw, err := client.Explain(ctx, q)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			if asJSON {
				_, err = out.Write(raw)
				return err
			}
			styleFor(out).Explain(out, given[0], x)
			return nil
		},
	}
	at.flags(c)
	f := c.Flags()
	f.Int64Var(&q.PromptTokens, "prompt-tokens", 0, "as for a prompt of `N` tokens")
	f.Int64Var(&q.MaxOutput, "max-output", 0, "as for a request that allows an answer of `N` tokens")
	f.BoolVar(&q.Tools, "tools", false, "as for a request that offers tools")
	f.BoolVar(&q.Images, "images", false, "as for a request that holds images")
	f.BoolVar(&q.Schema, "schema", false, "as for a request that wants JSON of a schema")
	f.BoolVar(&q.Stream, "stream", false, "as for a request that wants a stream")
	f.StringVar(&q.Session, "session", "", "as for a request of the session that the header x-session-id names `S`")
	f.StringVar(&body, "body", "", "as for the client's request in `FILE` (- for the input): what the targets' dialects cannot express is told")
	f.StringVar(&q.Path, "path", "", "as for that request sent to `PATH`, such as /v1/messages (default /v1/chat/completions)")
	f.StringVar(&q.Client, "client", "", "as for a request with the client key of that `NAME`")
	c.Flags().BoolVar(&asJSON, "json", false, "print the answer of the admin API")
	return c
}

// requestIn reads a client's request from a file, or from the input.
func requestIn(c *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.InOrStdin())
	}
	return os.ReadFile(name)
}

func resetCommand() *cobra.Command {
	var at where
	var q admin.ResetRequest
	var all bool
	c := &cobra.Command{
		Use: "reset", Short: "End exclusions in a running gateway", Args: atMost(0),
		Long: "Ends the exclusions of what the flags name, and of everything below it: --provider alone is the provider\n" +
			"with all its connections and models, --all is everything.",
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case all && (q.Provider != "" || q.Connection != "" || q.Model != ""):
				return wrong(c, "--all takes no other name; leave it or them out")
			case !all && q.Provider == "":
				return wrong(c, "name what to reset: --provider, with --connection and --model to narrow it, or --all")
			case all:
				q.Scope = "all"
			case q.Model != "":
				q.Scope = "model"
			case q.Connection != "":
				q.Scope = "connection"
			default:
				q.Scope = "provider"
			}
			client, err := at.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			ctx, cancel := interruptible(c)
			defer cancel()
			n, err := client.Reset(ctx, q)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), resetText(n))
			return nil
		},
	}
	at.flags(c)
	c.Flags().StringVar(&q.Provider, "provider", "", "the provider")
	c.Flags().StringVar(&q.Connection, "connection", "", "one connection of it")
	c.Flags().StringVar(&q.Model, "model", "", "one model, on the connection or on all")
	c.Flags().BoolVar(&all, "all", false, "everything")
	c.Flags().BoolVar(&q.IncludeOperator, "include-operator", false, "operators' own exclusions too")
	return c
}

func resetText(n resilience.ResetCount) string {
	if n == (resilience.ResetCount{}) {
		return "nothing was out of service there"
	}
	return fmt.Sprintf("back in service: %s, %s, %s",
		count(n.Breakers, "breaker"), count(n.Connections, "connection"), count(n.Lockouts, "model lockout"))
}
