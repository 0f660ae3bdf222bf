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

// simulation is what the flags of simulate ask for.
type simulation struct {
	asJSON, compare bool
	naive           bool
	page, config    string
	recording       string
	seed            uint64
	seeds           int
}

func simulateCommand() *cobra.Command {
	var s simulation
	c := &cobra.Command{
		Use: "simulate FILE", Short: "Try a configuration against an outage before it happens",
		Long: "Plays a schedule (traffic, and how the upstreams behave over time) on virtual time with the engine, the router and\n" +
			"the attempt loop that serve real traffic, and reports what clients would have seen. The same seed gives the same\n" +
			"report. docs/simulate.md describes the file; examples/ has some.\n\n" +
			"  omniroute simulate FILE                              play a schedule\n" +
			"  omniroute simulate --compare A.yaml B.yaml FILE      with two configurations, over several seeds\n" +
			"  omniroute simulate --replay OUTCOMES -c CONFIG       what another configuration would have made of what a gateway\n" +
			"                                                       has recorded (`record` in its configuration)",
		Args: args(s.arguments),
		RunE: s.run,
	}
	f := c.Flags()
	f.BoolVar(&s.asJSON, "json", false, "print JSON")
	f.StringVar(&s.page, "html", "", "write a page with charts to `FILE`, which needs nothing else")
	f.Uint64Var(&s.seed, "seed", 1, "draw by this seed instead of the file's")
	f.BoolVar(&s.compare, "compare", false, "play the schedule with two configurations")
	f.IntVar(&s.seeds, "seeds", 5, "with --compare: how many seeds to play")
	f.BoolVar(&s.naive, "naive", false, "play a proxy that only retries instead, for comparison")
	f.StringVar(&s.recording, "replay", "", "play the requests recorded in `OUTCOMES` instead of a schedule")
	f.StringVarP(&s.config, "config", "c", "", "with --replay: the configuration to try")
	return c
}

// arguments checks what there must be beside the flags.
func (s *simulation) arguments(_ *cobra.Command, given []string) error {
	want := 1
	switch {
	case s.compare && s.recording != "":
		return errors.New("--compare plays a schedule and --replay a recording; give one of them")
	case s.compare:
		if want = 3; len(given) != want {
			return errors.New("--compare needs two configurations and a schedule: --compare A.yaml B.yaml FILE")
		}
	case s.recording != "":
		if want = 0; s.config == "" {
			return errors.New("--replay needs the configuration to try: --replay OUTCOMES -c CONFIG")
		}
	case len(given) == 0:
		return errors.New("the schedule FILE is missing")
	case s.config != "":
		return errors.New("a schedule names its own configuration; -c goes with --replay")
	}
	if len(given) > want {
		return fmt.Errorf("%q is one argument too many", given[want])
	}
	return nil
}

func (s *simulation) run(c *cobra.Command, given []string) error {
	switch {
	case s.page != "" && (s.compare || s.recording != ""):
		return wrong(c, "--html is for one schedule with one configuration")
	case c.Flags().Changed("seeds") && !s.compare:
		return wrong(c, "--seeds goes with --compare; one run has one --seed")
	case s.naive && (s.compare || s.recording != ""):
		return wrong(c, "--naive is for one schedule with one configuration")
	case s.seeds < 1 || s.seeds > 1000:
		return wrong(c, "--seeds is a number from 1 to 1000")
	}
	made, err := s.play(c.Flags().Changed("seed"), given)
	if err != nil {
		return err
	}
	if !s.asJSON {
		return made.WriteText(c.OutOrStdout())
	}
	enc := json.NewEncoder(c.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(made)
}

// play does what is asked for and returns what can be printed of it.
func (s *simulation) play(seeded bool, given []string) (interface{ WriteText(io.Writer) error }, error) {
	if s.recording != "" {
		rec, err := simulate.LoadRecording(s.recording)
		if err != nil {
			return nil, err
		}
		return rec.Replay(s.recording, s.config, s.seed)
	}
	f, err := simulate.Load(given[len(given)-1])
	if err != nil {
		return nil, err
	}
	if seeded {
		f.Seed = s.seed
	}
	if s.compare {
		return f.Compare(given[0], given[1], s.seeds)
	}
	f.Naive = s.naive
	r, err := f.Run()
	if err == nil && s.page != "" {
		err = writePage(s.page, r)
	}
	return r, err
}

func writePage(file string, r *simulate.Report) error {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("the page cannot be written: %w", err)
	}
	return errors.Join(r.WriteHTML(out), out.Close())
}
