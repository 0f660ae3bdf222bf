package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// logger writes for people on a terminal and for programs elsewhere.
func logger(w io.Writer) *slog.Logger {
	if !terminal(w) {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{TimeFormat: time.TimeOnly, NoColor: !colours(w)}))
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colours says whether to use them: on a terminal that has them, unless NO_COLOR is set.
func colours(w io.Writer) bool {
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
