package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Row is one measured number beside its bound.
type Row struct {
	// ID is stable; Options.Rows selects by it.
	ID string `json:"id"`
	// What says what was measured.
	What string `json:"what"`
	// Ours and Reference are medians, as text with their units; Reference is empty where nothing
	// is compared.
	Ours      string `json:"ours"`
	Reference string `json:"reference,omitempty"`
	// Value is what is judged: a ratio, a difference or Ours itself, and Unit its unit ("x" for a
	// ratio). Bound is the most that it may be.
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Bound float64 `json:"bound"`
	// Info says that the row is shown for comparison and judged by nobody.
	Info bool `json:"info,omitempty"`
	// Failed says what makes the row worthless: errors where there must be none.
	Failed string `json:"failed,omitempty"`
	// Raw is everything that the numbers were made of.
	Raw any `json:"raw,omitempty"`
}

// Holds reports whether the row is within its bound.
func (r Row) Holds() bool { return r.Failed == "" && (r.Info || r.Value <= r.Bound) }

// Report is everything of one run.
type Report struct {
	Machine Machine   `json:"machine"`
	Started time.Time `json:"started"`
	Took    string    `json:"took"`
	Short   bool      `json:"short"`
	Rows    []Row     `json:"rows"`
}

// Holds reports whether every row is within its bound.
func (r *Report) Holds() bool {
	for _, row := range r.Rows {
		if !row.Holds() {
			return false
		}
	}
	return true
}

// Table renders the rows in Markdown.
func (r *Report) Table() string {
	var b strings.Builder
	b.WriteString("| what | ours | reference | measured | at most | holds |\n|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		bound, holds := number(row.Bound, row.Unit), "yes"
		switch {
		case row.Failed != "":
			holds = "no: " + strings.ReplaceAll(row.Failed, "|", "/")
		case row.Info:
			bound, holds = "", ""
		case !row.Holds():
			holds = "**no**"
		}
		reference := row.Reference
		if reference == "" {
			reference = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", row.What, row.Ours, reference, number(row.Value, row.Unit), bound, holds)
	}
	return b.String()
}

// number prints a value with as many digits as it deserves.
func number(v float64, unit string) string {
	if unit == "x" {
		return fmt.Sprintf("%.2fx", v)
	}
	text := fmt.Sprintf("%.2f", v)
	switch {
	case v == float64(int64(v)):
		text = fmt.Sprintf("%.0f", v)
	case v >= 100:
		text = fmt.Sprintf("%.0f", v)
	case v >= 10:
		text = fmt.Sprintf("%.1f", v)
	}
	if unit == "" {
		return text
	}
	return text + " " + unit
}

// Write puts the report into a folder: report.md for people, report.json with the numbers, and a
// JSON file of raw data for each row.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	write := func(name string, v any) {
		data, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		errs = append(errs, err)
	}
	bare := *r
	bare.Rows = nil
	for _, row := range r.Rows {
		if row.Raw != nil {
			write("raw-"+row.ID+".json", row.Raw)
		}
		row.Raw = nil
		bare.Rows = append(bare.Rows, row)
	}
	write("report.json", bare)
	errs = append(errs, os.WriteFile(filepath.Join(dir, "report.md"), []byte(r.Table()+"\n"+r.Machine.String()+"\n"), 0o644))
	return errors.Join(errs...)
}

// micros prints a duration in microseconds or milliseconds.
func micros(d time.Duration) string {
	if d < 10*time.Millisecond {
		return number(float64(d.Nanoseconds())/1e3, "µs")
	}
	return number(float64(d.Nanoseconds())/1e6, "ms")
}
