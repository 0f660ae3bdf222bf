package livecheck

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Write prints the results as a table.
func Write(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CONNECTION\tMODEL\tTOOK\tRESULT")
	for _, r := range results {
		model := cmp.Or(r.Model, "-")
		if r.From != "" {
			model += " (" + r.From + ")"
		}
		fmt.Fprintf(t, "%s/%s\t%s\t%v\t%s\n", r.Provider, r.Connection, model, r.Took.Round(time.Millisecond), r.Text)
	}
	return t.Flush()
}

// Failed counts the results that are not OK.
func Failed(results []Result) (n int) {
	for _, r := range results {
		if !r.OK {
			n++
		}
	}
	return n
}
