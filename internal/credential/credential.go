// Package credential runs the commands that connections get their keys from (api_key_command), and again before a key
// ends.
//
// A run that fails leaves the key that there is in use. Nothing that a command writes is ever logged or part of an
// error.
package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"omniroute/internal/config"
)

// maxOutput bounds what is read of a command's output, in bytes.
const maxOutput = 64 << 10

// answer is what a command has said.
type answer struct {
	key  config.Secret
	ends time.Time // zero: it did not say
}

// execute runs a command and returns what it has written.
func execute(ctx context.Context, c *config.Command) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.WaitDelay = time.Second // a child of its own may hold the output open
	out := &limited{left: maxOutput}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("it took longer than %s", c.Timeout)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case out.over:
		return nil, fmt.Errorf("it wrote more than %d bytes", maxOutput)
	}
	return out.text, nil
}

// limited keeps what is written up to a bound, and takes the rest too, so that the writer comes to its end.
type limited struct {
	text []byte
	left int
	over bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		l.over = true
		return len(p), nil
	}
	l.left -= len(p)
	l.text = append(l.text, p...)
	return len(p), nil
}

// read understands what a command has written: the key alone, or a JSON object with it and its end.
func read(out []byte) (answer, error) {
	text := strings.TrimSpace(string(out))
	var a answer
	if strings.HasPrefix(text, "{") {
		var object struct {
			Key  string `json:"api_key"`
			Ends string `json:"expires_at"`
		}
		if json.Unmarshal([]byte(text), &object) != nil {
			return a, errors.New(`it wrote a { and no JSON object behind it; it must write the key alone, or {"api_key": "…", "expires_at": "2026-01-02T03:04:05Z"}`)
		}
		text = object.Key
		if object.Ends != "" {
			ends, err := time.Parse(time.RFC3339, object.Ends)
			if err != nil {
				return a, errors.New("its expires_at is no time such as 2026-01-02T03:04:05Z")
			}
			a.ends = ends
		}
	}
	if why := config.CheckKey(text); why != "" {
		return a, fmt.Errorf("what it wrote is no key: %s", why)
	}
	a.key = config.NewSecret(text)
	return a, nil
}
