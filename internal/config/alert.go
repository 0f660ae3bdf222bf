package config

import (
	"net/url"
	"slices"
)

// Alert is somebody who is told over a webhook.
type Alert struct {
	// Name is for people and logs, empty where the file gives none.
	Name string
	// URL is where messages are posted. It is a Secret, since for many receivers it is one.
	URL Secret
	// Secret signs the messages. Empty: they are not signed.
	Secret Secret
	// Events are what is told, of AlertEvents. Defaults to all.
	Events []string
}

// Equal reports whether both are the same receiver.
func (a Alert) Equal(o Alert) bool {
	return a.Name == o.Name && a.URL.Equal(o.URL) && a.Secret.Equal(o.Secret) && slices.Equal(a.Events, o.Events)
}

// AlertEvents are what may be told.
func AlertEvents() []string {
	return []string{"breaker", "quarantine", "no_target", "store", "cluster"}
}

func (b *builder) alerts(n *node) {
	if !n.ok() {
		return
	}
	for _, item := range n.items {
		at := item.get("url")
		if at != nil && at.absent {
			b.warnf(at, "the variable is not set or empty, so nobody is told here")
			continue
		}
		if item.bad || !at.ok() {
			continue
		}
		a := Alert{URL: NewSecret(at.text), Events: AlertEvents()}
		if u, err := url.Parse(at.text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			b.errorf(at, "this is no address of a receiver; write one such as https://hooks.example/omniroute")
			continue
		}
		if name := item.get("name"); name.ok() {
			if reason := badName(name.text); reason != "" {
				b.errorf(name, "%s is no name for a receiver: %s", quote(name.shown()), reason)
				continue
			}
			a.Name = name.text
		}
		if secret := item.get("secret"); secret.ok() {
			if secret.absent {
				b.errorf(secret, "the variable is not set or empty; set it, or remove the key to send unsigned messages")
				continue
			}
			a.Secret = NewSecret(secret.text)
		}
		if events := item.get("events"); events.ok() {
			a.Events = nil
			for _, e := range events.items {
				if e.ok() && !slices.Contains(a.Events, e.text) {
					a.Events = append(a.Events, e.text)
				}
			}
		}
		if slices.ContainsFunc(b.cfg.Alerts, a.Equal) {
			b.errorf(item, "this receiver stands in the list twice; remove one")
			continue
		}
		b.cfg.Alerts = append(b.cfg.Alerts, a)
	}
}
