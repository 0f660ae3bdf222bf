package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// pos is a place in the source, from 1.
type pos struct{ line, column int }

// shape is what a value looks like in YAML.
type shape uint8

const (
	shapeNull shape = iota
	shapeString
	shapeInt
	shapeFloat
	shapeBool
	shapeList
	shapeMap
)

// String says what was found, for messages.
func (s shape) String() string {
	return [...]string{"nothing", "a string", "a number", "a number with a fraction", "a truth value", "a list", "a mapping"}[s]
}

func (s shape) scalar() bool { return s < shapeList }

// publish says that a value may be shown, and the plain entries of a list. A mapping's may not: with lines in
// disorder it could be anything.
func (n *node) publish() {
	n.public = true
	for _, item := range n.items {
		item.public = true
	}
}

// node is a value of the file: anchors and merge keys are resolved, variables are expanded.
type node struct {
	shape shape
	pos   pos
	path  string // "providers.acme.connections[0]"

	text     string // a scalar's text, expanded
	raw      string // the same before the expansion
	expanded bool   // a variable was expanded in it, so that its shape says nothing about what is meant
	plain    bool   // a string without quotes
	folded   bool   // it goes over several lines
	absent   bool   // it is empty because a ${VAR:-} is

	entries []entry // of a mapping, merged ones after its own
	items   []*node // of a list
	dropped []*node // values that were not taken over and must be hidden all the same

	public bool // it stands where no secret belongs, so that it may be shown
	secret bool // it stands where only a secret belongs, so that not even a number is shown
	bad    bool // an error was reported about it: its value must not be used
}

type entry struct {
	key   string
	pos   pos
	value *node
}

// get returns the value of a key, nil when it is absent. It may be called on nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i := range n.entries {
		if n.entries[i].key == key {
			return n.entries[i].value
		}
	}
	return nil
}

// shown is the text for a message: as the file has it, so that no variable's value is shown.
func (n *node) shown() string { return n.raw }

// ok reports whether there is a value that can be used.
func (n *node) ok() bool { return n != nil && !n.bad && n.shape != shapeNull }

// maxNodes bounds what anchors may multiply a file to.
const maxNodes = 200_000

// converter makes nodes of a syntax tree.
type converter struct {
	*problems
	env     func(string) (string, bool)
	anchors map[string]ast.Node
	count   int
}

func (c *converter) convert(tree ast.Node, path string) *node {
	c.count++
	n := &node{path: path}
	if tree == nil {
		return n
	}
	if t := tree.GetToken(); t != nil && t.Position != nil {
		n.pos = pos{t.Position.Line, t.Position.Column}
	}
	if c.count > maxNodes {
		if c.count == maxNodes+1 {
			c.errorf(n, "the file has more than %d values, its anchors counted as often as they are used; make it smaller", maxNodes)
		}
		n.bad = true
		return n
	}
	switch t := tree.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		c.scalar(n, shapeBool, t.Token.Value)
	case *ast.IntegerNode:
		c.scalar(n, shapeInt, fmt.Sprint(t.Value))
	case *ast.FloatNode:
		c.scalar(n, shapeFloat, t.Token.Value)
	case *ast.InfinityNode:
		c.scalar(n, shapeFloat, t.Token.Value)
	case *ast.NanNode:
		c.scalar(n, shapeFloat, t.Token.Value)
	case *ast.StringNode:
		n.plain = t.Token.Type == token.StringType
		n.folded = strings.Contains(strings.TrimSpace(t.Token.Origin), "\n")
		c.scalar(n, shapeString, t.Value)
	case *ast.LiteralNode:
		n.folded = true
		c.scalar(n, shapeString, t.Value.Value)
	case *ast.SequenceNode:
		n.shape = shapeList
		for i, item := range t.Values {
			n.items = append(n.items, c.convert(item, fmt.Sprintf("%s[%d]", path, i)))
		}
	case *ast.MappingNode:
		n.shape = shapeMap
		if len(t.Values) > 0 && !t.IsFlowStyle {
			n.pos = keyPos(t.Values[0])
		}
		c.mapping(n, t.Values)
	case *ast.MappingValueNode:
		n.shape, n.pos = shapeMap, keyPos(t)
		c.mapping(n, []*ast.MappingValueNode{t})
	case *ast.AnchorNode:
		name := t.Name.GetToken().Value
		n = c.convert(t.Value, path)
		if c.anchors == nil {
			c.anchors = map[string]ast.Node{}
		}
		// Only from here on, so that nothing can contain itself.
		c.anchors[name] = t.Value
	case *ast.AliasNode:
		name := t.Value.GetToken().Value
		target, ok := c.anchors[name]
		if !ok {
			c.errorf(n, "no anchor &%s stands before this alias; write &%s at the value that is meant", name, name)
			return n
		}
		return c.convert(target, path)
	case *ast.TagNode:
		c.errorf(n, "tags such as %s are not used here; remove it, and put text that looks like a number in quotes", t.Start.Value)
		n.dropped = append(n.dropped, c.convert(t.Value, path))
	default:
		c.errorf(n, "this kind of YAML (%s) has no meaning here; write a plain value", tree.Type())
	}
	return n
}

func keyPos(v *ast.MappingValueNode) pos {
	if t := v.Key.GetToken(); t != nil && t.Position != nil {
		return pos{t.Position.Line, t.Position.Column}
	}
	return pos{}
}

func (c *converter) mapping(n *node, values []*ast.MappingValueNode) {
	first := map[string]pos{}
	var merged []entry
	for _, v := range values {
		at := keyPos(v)
		if v.Key.IsMergeKey() {
			from := c.convert(v.Value, n.path)
			n.dropped = append(n.dropped, from)
			merged = append(merged, c.merge(from)...)
			continue
		}
		key, ok := c.key(v.Key)
		if !ok {
			c.errorAt(at, n.path, "a key must be plain text; write it as name: value")
			n.dropped = append(n.dropped, c.convert(v.Value, n.path))
			if k, ok := v.Key.(*ast.MappingKeyNode); ok {
				n.dropped = append(n.dropped, c.convert(k.Value, n.path))
			}
			continue
		}
		if strings.ContainsAny(key, " \t\n") {
			// No key has spaces. A colon was forgotten, and what follows may be a secret.
			c.errorAt(at, n.path, "a key has no spaces; a colon or comma is missing here: write key: value")
			n.dropped = append(n.dropped, &node{shape: shapeString, pos: at, raw: key, text: key}, c.convert(v.Value, n.path))
			continue
		}
		path := join(n.path, key)
		if before, dup := first[key]; dup {
			c.errorAt(at, path, "the key was already written in line %d; keep one of the two", before.line)
			n.dropped = append(n.dropped, c.convert(v.Value, path))
			continue
		}
		first[key] = at
		n.entries = append(n.entries, entry{key, at, c.convert(v.Value, path)})
	}
	for _, e := range merged {
		if n.get(e.key) == nil {
			n.entries = append(n.entries, e)
		} else {
			n.dropped = append(n.dropped, e.value)
		}
	}
}

// key returns a mapping's key as text: numbers and truth values may be names too.
func (c *converter) key(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value, true
	}
	return "", false
}

// merge returns the entries that a merge key's value brings: of one mapping, or of several, the first of which wins.
func (c *converter) merge(n *node) []entry {
	switch {
	case n.bad:
		return nil
	case n.shape == shapeMap:
		return n.entries
	case n.shape == shapeList:
		var all []entry
		for _, item := range n.items {
			all = append(all, c.merge(item)...)
		}
		return all
	}
	c.errorf(n, "a merge key << takes a mapping or a list of them, not %s; write <<: *name", n.shape)
	return nil
}

func (c *converter) scalar(n *node, s shape, text string) {
	n.shape, n.raw, n.text = s, text, text
	if s != shapeString || !strings.Contains(text, "$") {
		return
	}
	expanded, err := expand(text, c.env)
	if err != nil {
		c.errorf(n, "%v", err)
		return
	}
	n.text, n.expanded = expanded.text, expanded.any
	n.absent = expanded.text == "" && expanded.defaulted
}

// join appends a key to a path, in quotes where it would be misread.
func join(path, key string) string {
	if key == "" || strings.ContainsAny(key, ". []\"\t\n") {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
