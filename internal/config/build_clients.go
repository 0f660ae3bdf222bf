package config

import (
	"slices"
	"time"

	"omniroute/internal/catalog"
)

// clients reads the client keys, each a key or a mapping with what its callers may ask for.
func (b *builder) clients(n *node) {
	if !n.ok() {
		return
	}
	for _, item := range n.items {
		key := item
		c := &Client{}
		if item.shape == shapeMap {
			key = item.get("key")
			if name := item.get("name"); name.ok() {
				b.clientName(name, c)
			}
			c.Models, c.Targets = b.patterns(item.get("models")), b.patterns(item.get("targets"))
			if rate := item.get("rate"); rate.ok() {
				c.Rate.Per = time.Minute
				b.int(rate.get("requests"), &c.Rate.Requests)
				b.duration(rate.get("per"), &c.Rate.Per)
			}
		}
		switch {
		case key == nil:
		case key.absent:
			b.warnf(key, "the variable is not set or empty, so this client key was left out")
		case key.ok() && !item.bad:
			b.client(key, c)
		}
	}
}

func (b *builder) client(n *node, c *Client) {
	key, err := ParseClientKey(n.text)
	switch {
	case err != nil:
		b.errorf(n, "%v", err)
	case slices.ContainsFunc(b.cfg.ClientKeys, func(other *Client) bool { return other.ClientKey == key }):
		b.errorf(n, "this client key stands in the list twice; remove one")
	default:
		c.ClientKey = key
		b.cfg.ClientKeys = append(b.cfg.ClientKeys, c)
	}
}

func (b *builder) clientName(n *node, c *Client) {
	switch reason := badName(n.text); {
	case reason != "":
		b.errorf(n, "%s is no name for a client: %s", quote(n.shown()), reason)
	case b.cfg.ClientNamed(n.text) != nil:
		b.errorf(n, "the name %s stands in the list twice; give each its own", quote(n.shown()))
	default:
		c.Name = n.text
	}
}

func (b *builder) patterns(n *node) (out []catalog.Pattern) {
	if !n.ok() {
		return nil
	}
	for _, item := range n.items {
		if !item.ok() {
			continue
		}
		if badModel(item.text) {
			b.errorf(item, "this matches no name; write a name without spaces, in which * stands for anything")
			continue
		}
		out = append(out, catalog.Pattern(item.text))
	}
	return out
}
