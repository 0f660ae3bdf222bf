package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestLogger writes what the flags say, and nothing below the level.
func TestLogger(t *testing.T) {
	t.Parallel()
	for _, o := range []logging{{"info", "auto"}, {"info", "text"}, {"info", "json"}, {"WARN", "json"}, {"debug", "text"}} {
		var b bytes.Buffer
		log, err := o.logger(&cobra.Command{}, &b)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("a debug line")
		log.Info("an info line", "n", 1)
		log.Warn("a warning\nin two lines")
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		want := map[string]int{"debug": 3, "info": 2, "WARN": 1}[o.level]
		if len(lines) != want {
			t.Errorf("%v: %d lines, want %d:\n%s", o, len(lines), want, b.String())
		}
		for _, line := range lines {
			if isJSON := json.Valid([]byte(line)); isJSON != (o.format == "json") {
				t.Errorf("%v: %s", o, line)
			}
		}
	}
	for _, o := range []logging{{"info+1", "auto"}, {"", "auto"}, {"info", ""}} {
		if _, err := o.logger(&cobra.Command{Use: "x"}, &bytes.Buffer{}); err == nil {
			t.Errorf("%v is taken", o)
		}
	}
}
