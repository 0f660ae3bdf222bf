package config

import "strings"

func (b *builder) connections(e *entry, p *Provider) {
	n := e.value
	list := n.get("connections")
	if list == nil {
		if p.Known != nil && !p.Known.NeedsKey() {
			p.Connections = []*Connection{{ID: "main", Weight: 1, provider: p}}
			return
		}
		variable := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(p.ID)) + "_API_KEY"
		if p.Known != nil {
			variable = p.Known.KeyVariables[0]
		}
		b.errorAt(e.pos, n.path, "the provider has no connection; add\n    connections:\n      - {id: main, api_key: \"${%s}\"}", variable)
		return
	}
	if list.bad {
		return
	}
	seen := map[string]int{}
	for _, item := range list.items {
		id := item.get("id")
		if item.bad || !id.ok() {
			continue
		}
		if reason := badName(id.text); reason != "" {
			b.errorf(id, "%s is no name for a connection: %s", quote(id.shown()), reason)
			continue
		}
		if line, dup := seen[id.text]; dup {
			b.errorf(id, "the connection %s stands in line %d already; give each its own id", quote(id.shown()), line)
			continue
		}
		seen[id.text] = id.pos.line
		c := &Connection{ID: id.text, Weight: 1, provider: p}
		b.int(item.get("weight"), &c.Weight)
		b.int(item.get("max_concurrent"), &c.MaxConcurrent)
		if base := item.get("base_url"); base.ok() {
			c.baseURL = b.baseURL(base)
		}
		if b.key(item, c) {
			p.Connections = append(p.Connections, c)
		} else {
			p.LeftOut = append(p.LeftOut, c.ID)
		}
	}
}

// key reads a connection's key. It returns false when the connection is to be left out.
func (b *builder) key(n *node, c *Connection) bool {
	literal, file, command := n.get("api_key"), n.get("api_key_file"), n.get("api_key_command")
	p := c.provider
	switch {
	case command != nil && (literal != nil || file != nil):
		b.errorf(command, "the connection has api_key_command beside api_key or api_key_file; keep one of them")
	case command.ok():
		b.keyCommand(command, c)
	case command != nil: // it has been reported
	case literal != nil && file != nil:
		b.errorf(file, "the connection has both api_key and api_key_file; keep one of the two")
	case literal != nil && literal.absent, file != nil && file.absent:
		at := literal
		if at == nil {
			at = file
		}
		b.warnf(at, "the variable is not set or empty, so the connection %s of %s was left out", quote(c.ID), p.ID)
		return false
	case literal.ok():
		if reason := badKey(literal.text); reason != "" {
			b.errorf(literal, "%s", reason)
			return true
		}
		c.Key = NewSecret(literal.text)
	case file.ok():
		b.keyFile(file, c)
	case literal == nil && file == nil && p.Known != nil && p.Known.NeedsKey() && p.baseURL == "" && c.baseURL == "" && len(p.Headers) == 0 && !n.anyBad():
		b.errorf(n, "%s needs a key; add\n    api_key: \"${%s}\"", p.Known.Title, p.Known.KeyVariables[0])
	}
	return true
}

func (b *builder) keyFile(n *node, c *Connection) {
	data, err := b.read(fromDir(b.dir, n.text))
	if err != nil {
		b.errorf(n, "%s", fileError(err))
		return
	}
	text := strings.TrimSpace(string(data))
	b.src.hide(text)
	if text == "" {
		b.errorf(n, "the file is empty; it must hold the key and nothing else")
		return
	}
	if reason := badKey(text); reason != "" {
		b.errorf(n, "what the file holds cannot be used: %s", reason)
		return
	}
	c.Key = NewSecret(text)
}

// badKey says why a key cannot travel in a header, "" when it can.
func badKey(key string) string {
	switch {
	case strings.TrimSpace(key) != key:
		return "the key begins or ends with a space; remove it"
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "the key has characters that no key has, such as spaces or line breaks; copy it again"
	}
	return ""
}
