// Command omniroute is the gateway and the tools around it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

// The exit statuses.
const (
	exitOK      = 0
	exitFailure = 1 // a failure that the message explains
	exitUsage   = 2
)

func run() int {
	root := command()
	err := root.ExecuteContext(context.Background())
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(root.ErrOrStderr(), "omniroute: %v\nrun `%s --help` for what there is\n", err, usage.command)
		return exitUsage
	}
	fmt.Fprintf(root.ErrOrStderr(), "omniroute: %v\n", err)
	return exitFailure
}

// usageError is a command line that cannot be meant.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func wrong(c *cobra.Command, text string) error {
	return &usageError{c.CommandPath(), errors.New(text)}
}

// args turns cobra's complaints about arguments into usage errors.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, given []string) error {
		if err := check(c, given); err != nil {
			return &usageError{c.CommandPath(), err}
		}
		return nil
	}
}

// named wants exactly one argument, and says what it is where it is missing.
func named(what string) cobra.PositionalArgs {
	return args(func(_ *cobra.Command, given []string) error {
		switch len(given) {
		case 0:
			return fmt.Errorf("%s is missing", what)
		case 1:
			return nil
		}
		return fmt.Errorf("%q is one argument too many; %s is all that is wanted", given[1], what)
	})
}

// atMost wants no more than n arguments.
func atMost(n int) cobra.PositionalArgs {
	return args(func(_ *cobra.Command, given []string) error {
		if len(given) > n {
			return fmt.Errorf("%q is one argument too many", given[n])
		}
		return nil
	})
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "omniroute",
		Short: "Keeps AI model traffic flowing while providers fail",
		Long: "OmniRoute is a gateway for AI model traffic. Clients speak to it as to their provider; it tries\n" +
			"accounts and providers in turn, leaves those alone that fail, and takes them back when they are well.\n\n" +
			"  omniroute serve --demo     see it work with simulated providers, without any key\n" +
			"  omniroute init             write a configuration for the keys in the environment\n" +
			"  omniroute serve            run it",
		SilenceUsage: true, SilenceErrors: true,
		Args: args(func(c *cobra.Command, given []string) error {
			if len(given) > 0 {
				return fmt.Errorf("there is no command %q", given[0])
			}
			return nil
		}),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Version: versionText(), // cobra makes --version and -v of it
	}
	root.SetVersionTemplate(versionLine())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{c.CommandPath(), err} })
	root.SetOut(os.Stdout)
	root.AddCommand(
		serveCommand(), checkCommand(), initCommand(), keyCommand(), schemaCommand(), backupCommand(),
		statusCommand(), explainCommand(), resetCommand(), simulateCommand(), backoffCommand(), classifyCommand(), versionCommand(),
	)
	return root
}

// interruptible ends the context at Ctrl-C, for commands that only ask.
func interruptible(c *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
}

const configHelp = "configuration `FILE`; default: ./omniroute.yaml, else keys in the environment"
