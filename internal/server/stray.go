package server

import (
	"bytes"
	"log"
	"log/slog"
)

// stray takes what libraries write to the program's standard logger. Go's HTTP client tells there what an upstream
// sent that nobody had asked for, and that may be somebody's answer: what stands in quotes is left out.
type stray struct{ log *slog.Logger }

func (s stray) Write(line []byte) (int, error) {
	words, _, _ := bytes.Cut(line, []byte{'"'})
	s.log.Warn("a library of the program says", "words", string(bytes.TrimSpace(words)))
	return len(line), nil
}

// gatherStray makes the log of the process the place for what libraries write.
func gatherStray(l *slog.Logger) {
	if l == slog.Default() {
		return // it may write to the standard logger itself
	}
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(stray{l})
}
