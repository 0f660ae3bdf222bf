package config

import "time"

// hedge reads when a combo asks a second target.
func (b *builder) hedge(n *node, combo *Combo) {
	if !n.ok() {
		return
	}
	h := &Hedge{Budget: 0.05}
	b.duration(n.get("after"), &h.After)
	b.share(n.get("budget"), &h.Budget)
	combo.Hedge = h
}

// hedgeInVain warns where a second target is never asked.
func (b *builder) hedgeInVain(n *node, combo *Combo) {
	if combo.Hedge == nil {
		return
	}
	places, slowest := 0, time.Duration(0)
	for _, t := range combo.Targets {
		slowest = max(slowest, t.FirstTokenTimeout, t.AnswerTimeout)
		if t.Connection != nil {
			places++
		} else {
			places += len(t.Provider.Connections)
		}
	}
	switch {
	case places == 1:
		b.warnf(n, "the combo has one target on one connection, so there is no second one to ask")
	case places > 1 && combo.Hedge.After >= slowest:
		b.warnf(n.get("after"), "every target's timeout is over by then (%s at most), so no second one is ever asked; write a shorter time", DurationText(slowest))
	}
}
