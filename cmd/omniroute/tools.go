package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"omniroute/classify"
	"omniroute/internal/route"
	"omniroute/internal/server"
	"omniroute/resilience"
)

// levelCount is the value of --levels.
type levelCount int

func (n *levelCount) String() string { return strconv.Itoa(int(*n)) }
func (n *levelCount) Type() string   { return "N" }

func (n *levelCount) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 || v > 1000 {
		return errors.New("write a number from 1 to 1000")
	}
	*n = levelCount(v)
	return nil
}

func backoffCommand() *cobra.Command {
	levels := levelCount(9)
	c := &cobra.Command{
		Use: "backoff", Short: "Print the ladder of cooldowns", Args: atMost(0),
		Long: "Prints how long a connection cools down at each level of the default ladder: 1s x 2^level, at most 120s.",
		RunE: func(c *cobra.Command, _ []string) error {
			out := bufio.NewWriter(c.OutOrStdout())
			fmt.Fprintln(out, "level  seconds")
			for level := range levels {
				fmt.Fprintf(out, "%5d  %7g\n", level, resilience.CalculateBackoffCooldown(float64(level)).Seconds())
			}
			return out.Flush()
		},
	}
	c.Flags().Var(&levels, "levels", "print levels 0 to `N`-1")
	return c
}

func classifyCommand() *cobra.Command {
	var file, provider, model string
	var jsonl bool
	c := &cobra.Command{
		Use: "classify", Short: "Tell what an upstream's answer means, and which rule says so", Args: atMost(0),
		Long: "Reads one raw HTTP response from standard input, as `curl -i` prints it, and tells the verdict.\n" +
			"With --jsonl it reads one JSON object a line (id, provider, dialect, status, headers, body, streaming, now) and\n" +
			"prints one verdict a line. Scope none is a healthy answer. -c adds the error_rules of a configuration.",
		RunE: func(c *cobra.Command, _ []string) error {
			if jsonl && (provider != "" || model != "") {
				return wrong(c, "with --jsonl each line names its own provider and model; leave --provider and --model out")
			}
			rules, err := classifier(file)
			if err != nil {
				return err
			}
			if jsonl {
				return classifyLines(c.InOrStdin(), c.OutOrStdout(), rules)
			}
			in, err := classify.ParseResponse(c.InOrStdin())
			if err != nil {
				return err
			}
			in.Provider, in.Model, in.Now = provider, model, time.Now()
			writeVerdict(c.OutOrStdout(), rules.Classify(in), in.Now)
			return nil
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", "use the error_rules of this configuration `FILE` too")
	c.Flags().StringVar(&provider, "provider", "", "who answered, by the name in the configuration")
	c.Flags().StringVar(&model, "model", "", "the model that was asked for")
	c.Flags().BoolVar(&jsonl, "jsonl", false, "read and write JSON lines")
	return c
}

func classifier(file string) (*classify.Classifier, error) {
	if file == "" {
		return classify.New()
	}
	cfg, _, err := server.Find(file).Load()
	if err != nil {
		return nil, err
	}
	return route.Classifier(cfg)
}

// writeVerdict prints a verdict for people.
func writeVerdict(w io.Writer, v resilience.Verdict, now time.Time) {
	r := classify.NewResult("", v, now)
	retry, until := "-", "-"
	if r.RetryAfterMs != nil {
		retry = (time.Duration(*r.RetryAfterMs) * time.Millisecond).String()
	}
	if r.Until != nil {
		until = *r.Until
	}
	for _, line := range [][2]string{
		{"scope", r.Scope}, {"kind", r.Kind}, {"retry after", retry}, {"until", until},
		{"retry same", yesNo(r.RetrySame)}, {"retry elsewhere", yesNo(r.RetryElse)}, {needsPerson(v), yesNo(r.Quarantine)},
		{"rule", r.Rule}, {"evidence", v.Evidence},
	} {
		if line[1] != "" {
			fmt.Fprintf(w, "%-16s %s\n", line[0], line[1])
		}
	}
}

// needsPerson names what happens where waiting does not help.
func needsPerson(v resilience.Verdict) string {
	if v.Scope == resilience.ScopeModel {
		return "locks the model"
	}
	return "quarantine"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// maxLine bounds one line of JSON, in bytes.
const maxLine = 64 << 20

// classifyLines answers line by line. A line that cannot be read is reported, and the others are
// answered all the same.
func classifyLines(in io.Reader, out io.Writer, rules *classify.Classifier) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	w := bufio.NewWriter(out)
	answer := json.NewEncoder(w)
	answer.SetEscapeHTML(false)
	var bad []error
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		one, err := classify.ParseLine(lines.Bytes(), time.Now())
		if err != nil {
			bad = append(bad, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		if err := answer.Encode(classify.NewResult(one.ID, rules.Classify(one.Input), one.Input.Now)); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return errors.Join(append(bad, lines.Err())...)
}
