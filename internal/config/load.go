package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Load reads and checks the file. What is wrong with its content is an Errors; with a file that
// cannot be read, an error that wraps the cause. Warnings come in both cases.
func Load(path string) (*Config, []Warning, error) {
	src, err := readRegular(path, maxSource+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &missingError{path}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	return Parse(path, src, os.LookupEnv)
}

// missingError says that a configuration is not there. It is a fs.ErrNotExist.
type missingError struct{ path string }

func (e *missingError) Error() string {
	return fmt.Sprintf("there is no file %s; write one with `omniroute init`, or name another with -c", e.path)
}

func (e *missingError) Unwrap() error { return fs.ErrNotExist }

// Parse checks a configuration that was read from name, which names it in messages and from whose folder relative
// paths are taken. Variables are looked up by env. Files that the configuration names (api_key_file, ca_file) are read.
// The error is an Errors.
func Parse(name string, src []byte, env func(string) (string, bool)) (*Config, []Warning, error) {
	return parse(name, src, env, func(path string) ([]byte, error) { return readRegular(path, maxSecretFile) })
}

// maxSecretFile bounds the files that a configuration names, in bytes.
const maxSecretFile = 1 << 20

func parse(name string, src []byte, env func(string) (string, bool), read func(string) ([]byte, error)) (*Config, []Warning, error) {
	p := &problems{}
	text, ok := p.readSource(name, src)
	if !ok {
		return nil, nil, p.err()
	}
	tree := p.parseYAML(text)
	if err := p.err(); err != nil {
		return nil, nil, err
	}
	if tree == nil {
		p.errorAt(pos{}, "", "the file is empty; write one with `omniroute init`")
		return nil, nil, p.err()
	}
	p.src.opaque = false
	n := (&converter{problems: p, env: env}).convert(tree, "")
	if n.shape != shapeMap && !n.bad {
		p.errorf(n, "a configuration is a mapping, such as\n    %s", lineOf("providers"))
	}
	p.check(n, &root)
	p.maskSecrets(n)
	b := &builder{problems: p, dir: filepath.Dir(name), read: read, root: n}
	c := b.build()
	if err := p.err(); err != nil {
		return nil, p.warnings, err
	}
	p.finish()
	return c, p.warnings, nil
}

// readRegular reads a regular file of at most limit bytes: a pipe or device could block for ever.
func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit && limit != maxSource+1 {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, nil
}

// maskSecrets remembers what must not be shown: every scalar that does not stand in a public place.
func (p *problems) maskSecrets(root *node) {
	p.src.masks = map[int][]span{}
	shown := map[string]bool{}
	root.walk(func(n *node) {
		if n.public {
			shown[n.raw] = true
		}
	})
	root.walk(func(n *node) {
		switch {
		case n.public && n.expanded && likeSecret(n.text):
			p.src.hide(n.text) // a secret's variable in a wrong place
		case n.shape.scalar() && n.shape != shapeNull && !n.public:
			p.maskValue(n, shown)
		}
	})
}

// walk calls f for a value and all below it, dropped ones included.
func (n *node) walk(f func(*node)) {
	f(n)
	for i := range n.entries {
		n.entries[i].value.walk(f)
	}
	for _, item := range slices.Concat(n.items, n.dropped) {
		item.walk(f)
	}
}

// maskValue hides a value where it stands and, unless the same is shown elsewhere as what it is, in all messages.
func (p *problems) maskValue(n *node, shown map[string]bool) {
	if n.expanded {
		p.src.hide(n.text)
	}
	if n.shape == shapeString && isVariable(n.raw) || n.shape != shapeString && !n.secret && commonWord(n.raw) {
		return
	}
	if n.secret || !shown[n.raw] {
		p.src.hide(n.raw)
	}
	if n.pos.line < 1 || n.pos.line > len(p.src.lines) {
		return
	}
	line := []rune(p.src.lines[n.pos.line-1])
	from := min(max(n.pos.column, 1), len(line)+1)
	rest := string(line[from-1:])
	for _, open := range []string{"", `"`, "'"} {
		if strings.HasPrefix(rest, open+n.raw+open) && open+n.raw != "" {
			to := from + len([]rune(n.raw)) + 2*len(open)
			p.src.masks[n.pos.line] = append(p.src.masks[n.pos.line], span{from, to})
			return
		}
	}
	// Escapes, several lines: everything up to the line's end, and what is indented below it.
	p.src.masks[n.pos.line] = append(p.src.masks[n.pos.line], span{from, 0})
	indent := indentation(p.src.lines[n.pos.line-1])
	for i := n.pos.line; i < len(p.src.lines) && strings.Contains(strings.TrimRight(n.raw, "\n")+"\n", "\n"); i++ {
		if line := p.src.lines[i]; strings.TrimSpace(line) != "" && indentation(line) <= indent {
			break
		}
		p.src.masks[i+1] = append(p.src.masks[i+1], span{1, 0})
	}
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " -")) }
