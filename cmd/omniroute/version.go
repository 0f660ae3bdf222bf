package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = ""

// versionText is the version or, in a build without one, the commit.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "dev-" + s.Value[:12]
			}
		}
	}
	return "dev"
}

// versionLine is what `omniroute version` and --version print.
func versionLine() string {
	return fmt.Sprintf("omniroute %s %s/%s\n", versionText(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: atMost(0),
		Run: func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), versionLine()) },
	}
}
