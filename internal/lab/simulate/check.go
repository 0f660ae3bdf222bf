package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/lab"
)

// Bounds of a run: more would take minutes and gigabytes for no better answer.
const (
	maxRequests = 20_000_000
	maxRate     = 1_000_000 // a second
	maxLength   = 31 * 24 * time.Hour
)

// check fills in what is not set and says what is wrong.
func (f *File) check() error {
	if f.Length <= 0 {
		return f.errorf("$.length", "it must be a duration above 0, such as 10m")
	}
	if f.Length > Duration(maxLength) {
		return f.errorf("$.length", "it must be at most %.0fh, 31 days", maxLength.Hours())
	}
	if f.Nodes < 1 || f.Nodes > 1000 {
		return f.errorf("$.nodes", "it must be from 1 to 1000")
	}
	if f.Propagation != 0 && !f.Shared {
		return f.errorf("$.propagation", "it is for nodes that share what they know; add shared: true")
	}
	if f.Shared && f.Nodes == 1 {
		return f.errorf("$.shared", "there is one node, and nobody to share with; add nodes: 3")
	}
	if f.Shared {
		set(&f.Propagation, Duration(200*time.Millisecond))
	}
	if f.Shared && (f.Propagation < Duration(10*time.Millisecond) || f.Propagation > Duration(time.Minute)) {
		return f.errorf("$.propagation", "it must be from 10ms to 1m")
	}
	if f.Shared {
		if rounds := int64(f.Nodes) * int64(f.Length/f.Propagation); rounds > maxRequests {
			return f.errorf("$.propagation", "%d nodes would hear of each other %d times in all, above the bound of %d; make it longer or the nodes fewer", f.Nodes, rounds, maxRequests)
		}
	}
	if len(f.Traffic) == 0 {
		return f.errorf("$.traffic", "nobody asks for anything; add - {model: NAME, rate: 10}")
	}
	total := 0.0
	for i := range f.Traffic {
		if err := f.checkTraffic(&f.Traffic[i], fmt.Sprintf("$.traffic[%d]", i)); err != nil {
			return err
		}
		t := &f.Traffic[i]
		total += t.Rate * (time.Duration(t.To) - time.Duration(t.From)).Seconds()
	}
	if total > maxRequests {
		return f.errorf("$.traffic", "these are %.0f requests in all, above the bound of %d; make it shorter or the rate lower", total, maxRequests)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Upstreams)) {
		u := f.Upstreams[name]
		if err := f.checkUpstream(name, &u, "$.upstreams.'"+name+"'"); err != nil {
			return err
		}
		f.Upstreams[name] = u
	}
	return nil
}

func (f *File) checkTraffic(t *Traffic, at string) error {
	if t.Model == "" {
		return f.errorf(at, "it has no model; name a combo, a provider/model or a model")
	}
	if _, err := f.cfg.ResolveFor(catalog.OpenAI, t.Model); err != nil {
		return f.errorf(at+".model", "%v", err)
	}
	if t.Rate <= 0 || !within(t.Rate, 0, maxRate) {
		return f.errorf(at+".rate", "it is how many requests come in a second, and must be above 0 and at most %d", maxRate)
	}
	if t.Arrivals == "" {
		t.Arrivals = "random"
	}
	if t.Arrivals != "random" && t.Arrivals != "even" {
		return f.errorf(at+".arrivals", "%q is neither random nor even", t.Arrivals)
	}
	if t.To == 0 || t.To > f.Length {
		t.To = f.Length
	}
	if t.From >= t.To {
		return f.errorf(at+".from", "it is not before the end of this traffic, %s", lasting(t.To))
	}
	if t.Stream == nil {
		t.Stream = new(float64)
		*t.Stream = 1
	}
	if !within(*t.Stream, 0, 1) {
		return f.errorf(at+".stream", "it is a share, from 0 to 1")
	}
	if !within(t.Leave, 0, 1) {
		return f.errorf(at+".leave", "it is a share, from 0 to 1")
	}
	if t.Sessions < 0 {
		return f.errorf(at+".sessions", "it must not be below 0")
	}
	set(&t.Prompt, Spread{2000, 0.5})
	set(&t.Output, Spread{400, 0.5})
	set(&t.Patience, Spread{5, 0.5})
	return nil
}

func (f *File) checkUpstream(name string, u *Upstream, at string) error {
	p := f.cfg.Provider(name)
	if p == nil {
		var names []string
		for _, other := range f.cfg.Providers {
			names = append(names, other.ID)
		}
		return f.errorf(at, "the configuration has no provider %q; it has %s", name, strings.Join(names, ", "))
	}
	set(&u.First, Spread{0.6, 0.5})
	set(&u.Speed, Spread{100, 0.3})
	set(&u.Refusal, Spread{0.075, 0.2})
	set(&u.Overload, "503-no-hint")
	if u.Capacity < 0 {
		return f.errorf(at+".capacity", "it must not be below 0")
	}
	if err := f.checkFault(u.Overload, at+".overload"); err != nil {
		return err
	}
	for i := range u.Limits {
		l, at := &u.Limits[i], fmt.Sprintf("%s.limits[%d]", at, i)
		if !slices.Contains([]string{"connection", "model", "provider"}, l.Per) {
			return f.errorf(at+".per", "%q is none of connection, model and provider", l.Per)
		}
		if l.Every < Duration(time.Second) {
			return f.errorf(at+".every", "it must be at least 1s")
		}
		if l.Requests <= 0 {
			return f.errorf(at+".requests", "it is how many it takes every %s, and must be above 0", lasting(l.Every))
		}
		if l.Answer != "" {
			if err := f.checkFault(l.Answer, at+".answer"); err != nil {
				return err
			}
		}
		if err := f.checkConnection(p, l.Connection, at); err != nil {
			return err
		}
	}
	for i := range u.Events {
		if err := f.checkEvent(p, &u.Events[i], fmt.Sprintf("%s.events[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) checkEvent(p *config.Provider, e *Event, at string) error {
	if e.From >= f.Length {
		return f.errorf(at, "it begins at %s, and the run ends at %s", lasting(e.From), lasting(f.Length))
	}
	if e.To == 0 || e.To > f.Length {
		e.To = f.Length
	}
	if e.From >= e.To {
		return f.errorf(at, "it begins at %s and ends at %s", lasting(e.From), lasting(e.To))
	}
	if e.Share == nil {
		e.Share = new(float64)
		*e.Share = 1
	}
	if *e.Share <= 0 || !within(*e.Share, 0, 1) {
		return f.errorf(at+".share", "it must be above 0 and at most 1")
	}
	if (e.Answer == "") == (e.Slow == 0) {
		return f.errorf(at, "it needs either an answer (500, 429:30s, hang, cut:8, …) or slow: how many times slower")
	}
	if e.Slow != 0 && (e.Slow <= 1 || !within(e.Slow, 1, maxQuantity)) {
		return f.errorf(at+".slow", "it is how many times slower answers are, and must be above 1 and at most %.0f", maxQuantity)
	}
	if e.Answer != "" {
		if err := f.checkFault(e.Answer, at+".answer"); err != nil {
			return err
		}
	}
	return f.checkConnection(p, e.Connection, at)
}

func (f *File) checkConnection(p *config.Provider, id, at string) error {
	if id == "" || p.Connection(id) != nil {
		return nil
	}
	var names []string
	for _, c := range p.Connections {
		names = append(names, c.ID)
	}
	return f.errorf(at+".connection", "%s has no connection %q; it has %s", p.ID, id, strings.Join(names, ", "))
}

func (f *File) checkFault(name, at string) error {
	if _, err := lab.ParseFault(name); err != nil {
		return f.errorf(at, "%v", err)
	}
	return nil
}

func lasting(d Duration) string { return config.DurationText(time.Duration(d)) }

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
