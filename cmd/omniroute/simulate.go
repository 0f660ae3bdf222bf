package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"omniroute/internal/lab/simulate"
)

func simulateCommand() *cobra.Command {
	var asJSON bool
	var page string
	var seed uint64
	var seeds int
	var compare bool
	c := &cobra.Command{
		Use: "simulate FILE | simulate --compare A.yaml B.yaml FILE", Short: "Try a configuration against an outage before it happens",
		Long: "Plays a schedule (traffic, and how the upstreams behave over time) on virtual time with the engine, the router and\n" +
			"the attempt loop that serve real traffic, and reports what clients would have seen. The same seed gives the same\n" +
			"report. --compare plays it with two configurations, over several seeds. docs/simulate.md describes the file.",
		Args: args(func(_ *cobra.Command, given []string) error {
			want := 1
			if compare {
				want = 3
			}
			switch {
			case compare && len(given) != want:
				return errors.New("--compare needs two configurations and a schedule: --compare A.yaml B.yaml FILE")
			case len(given) == 0:
				return errors.New("the schedule FILE is missing")
			case len(given) > want:
				return fmt.Errorf("%q is one argument too many; to play two configurations, say --compare A.yaml B.yaml FILE", given[want])
			}
			return nil
		}),
		RunE: func(c *cobra.Command, given []string) error {
			f, err := simulate.Load(given[len(given)-1])
			if err != nil {
				return err
			}
			if c.Flags().Changed("seed") {
				f.Seed = seed
			}
			if compare {
				if page != "" {
					return wrong(c, "there is no page of a comparison; leave --html out")
				}
				made, err := f.Compare(given[0], given[1], seeds, nil)
				if err != nil {
					return err
				}
				return write(c.OutOrStdout(), asJSON, made)
			}
			if c.Flags().Changed("seeds") {
				return wrong(c, "--seeds goes with --compare; one run has one --seed")
			}
			r, err := f.Run()
			if err != nil {
				return err
			}
			if page != "" {
				if err := writePage(page, r); err != nil {
					return err
				}
			}
			return write(c.OutOrStdout(), asJSON, r)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&page, "html", "", "write a page with charts to `FILE`, which needs nothing else")
	c.Flags().Uint64Var(&seed, "seed", 1, "draw by this seed instead of the file's")
	c.Flags().IntVar(&seeds, "seeds", 5, "with --compare: how many seeds to play")
	c.Flags().BoolVar(&compare, "compare", false, "play the schedule with two configurations")
	return c
}

// write prints what a run has made.
func write(w io.Writer, asJSON bool, made interface{ WriteText(io.Writer) error }) error {
	if !asJSON {
		return made.WriteText(w)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(made)
}

func writePage(file string, r *simulate.Report) error {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("the page cannot be written: %w", err)
	}
	return errors.Join(r.WriteHTML(out), out.Close())
}
