package config

import (
	"slices"
	"sync/atomic"
	"time"
)

// Command says how a connection gets a key that does not last.
type Command struct {
	// Args are the program and its arguments. There is no shell.
	Args []string
	// Refresh is how long a key is used that says nothing of its end. Defaults to 15m.
	Refresh time.Duration
	// Timeout bounds one run. Defaults to 10s.
	Timeout time.Duration
	// Dir is where it runs: the configuration's folder.
	Dir string
}

// Equal reports whether both are the same command.
func (c *Command) Equal(o *Command) bool {
	return slices.Equal(c.Args, o.Args) && c.Refresh == o.Refresh && c.Timeout == o.Timeout && c.Dir == o.Dir
}

// Credential is a key that changes while it is used. The zero value holds none. It is safe for concurrent use, and the
// one thing about a configuration that changes after it was made.
type Credential struct{ now, before atomic.Pointer[Secret] }

// Set replaces the key. The one before is still hidden wherever it appears.
func (c *Credential) Set(s Secret) { c.before.Store(c.now.Swap(&s)) }

// Get returns the key, the empty Secret where there is none yet.
func (c *Credential) Get() Secret {
	if s := c.now.Load(); s != nil {
		return *s
	}
	return Secret{}
}

// Provide makes the connection use a credential. It is for the program that runs the commands, before it uses the
// configuration.
func (c *Connection) Provide(live *Credential) { c.live = live }

// Secret returns the key in force, the empty Secret where there is none.
func (c *Connection) Secret() Secret {
	if c.live != nil {
		return c.live.Get()
	}
	return c.Key
}

// secrets calls f with each key that the connection has or had.
func (c *Connection) secrets(f func(string)) {
	f(c.Secret().Reveal())
	if c.live != nil {
		if before := c.live.before.Load(); before != nil {
			f(before.Reveal())
		}
	}
}

func (b *builder) keyCommand(n *node, c *Connection) {
	run := n
	c.Command = &Command{Refresh: 15 * time.Minute, Timeout: 10 * time.Second, Dir: b.dir}
	if n.shape == shapeMap {
		run = n.get("run")
		b.duration(n.get("refresh"), &c.Command.Refresh)
		b.duration(n.get("timeout"), &c.Command.Timeout)
	}
	if !run.ok() {
		return
	}
	for _, item := range run.items {
		if item.ok() {
			c.Command.Args = append(c.Command.Args, item.text)
		}
	}
	if len(c.Command.Args) > 0 && c.Command.Args[0] == "" {
		b.errorf(run.items[0], "the command has no name; write the program and its arguments, such as [vault, read, -field=key, secret/openai]")
	}
}

// CheckKey says why a key cannot travel in a header, "" when it can.
func CheckKey(key string) string {
	if key == "" {
		return "it is empty"
	}
	return badKey(key)
}
