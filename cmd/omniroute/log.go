package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// logging is what the flags say of the log.
type logging struct{ level, format string }

const (
	logLevels  = "debug, info, warn or error"
	logFormats = "auto, text or json"
)

// logger writes lines from a level on: as JSON, as text, or, where the format is auto, as is best read where it goes.
func (o logging) logger(c *cobra.Command, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil || strings.ContainsAny(o.level, "+-") {
		return nil, wrong(c, fmt.Sprintf("--log-level %q is no level; write %s", o.level, logLevels))
	}
	switch o.format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), nil
	case "auto":
		if terminal(w) {
			return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !colours(w)})), nil
		}
	case "text":
	default:
		return nil, wrong(c, fmt.Sprintf("--log-format %q is none; write %s", o.format, logFormats))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colours says whether to use them: on a terminal that has them, unless NO_COLOR is set.
func colours(w io.Writer) bool {
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
