package redis

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"omniroute/resilience"
)

// Gates and views as the server keeps them; common.lua says how. Names are escaped, so that a gate
// is one word of ASCII.

// gateText names a gate: "2/openai/main/".
func gateText(id resilience.RecordID) string {
	k := id.Key
	return strconv.Itoa(int(id.Layer)) + "/" + url.PathEscape(k.Provider) + "/" + url.PathEscape(k.Connection) + "/" + url.PathEscape(k.Model)
}

func parseGate(s string) (id resilience.RecordID, err error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 {
		return id, fmt.Errorf("%q names no gate", s)
	}
	layer, err := strconv.ParseUint(parts[0], 10, 8)
	if err != nil {
		return id, fmt.Errorf("%q names no gate: %w", s, err)
	}
	id.Layer = resilience.Layer(layer)
	for i, name := range []*string{&id.Key.Provider, &id.Key.Connection, &id.Key.Model} {
		if *name, err = url.PathUnescape(parts[i+1]); err != nil {
			return id, fmt.Errorf("%q names no gate: %w", s, err)
		}
	}
	return id, nil
}

const (
	maxStamp = 1<<53 - 1 // what Lua counts exactly
	maxLevel = 999_999
)

func clamp(n, limit int64) int64 { return min(max(n, 0), limit) }

func viewText(v resilience.View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "C %016d %019d", clamp(int64(v.Cleared), maxStamp), max(v.KeepMs, 0))
	for _, f := range v.Facts {
		fmt.Fprintf(&b, "\nF %016d %s", clamp(int64(f.Stamp), maxStamp), factText(f))
	}
	return b.String()
}

// factText is a fact's line behind its stamp.
func factText(f resilience.Fact) string {
	return fmt.Sprintf("%019d %06d %02d %s", max(f.UntilMs, 0), clamp(int64(f.Level), maxLevel), clamp(int64(f.Gravity), 99), f.Text)
}

var errView = errors.New("it is no view of a gate")

func parseView(s string) (v resilience.View, err error) {
	for line := range strings.SplitSeq(s, "\n") {
		switch {
		case len(line) == 38 && line[0] == 'C':
			n := numbers{line: line}
			v.Cleared, v.KeepMs = resilience.Stamp(n.at(2, 18)), n.at(19, 38)
			err = errors.Join(err, n.err)
		case len(line) > 49 && line[0] == 'F':
			n := numbers{line: line}
			v.Facts = append(v.Facts, resilience.Fact{Stamp: resilience.Stamp(n.at(2, 18)), UntilMs: n.at(19, 38),
				Level: int(n.at(39, 45)), Gravity: int(n.at(46, 48)), Text: line[49:]})
			err = errors.Join(err, n.err)
		case line != "":
			err = errView
		}
	}
	return v, err
}

// numbers reads the numbers of a line by their place.
type numbers struct {
	line string
	err  error
}

func (n *numbers) at(from, to int) int64 {
	v, err := strconv.ParseUint(n.line[from:to], 10, 63)
	if err != nil {
		n.err = errView
	}
	return int64(v)
}

// known reads pairs of gates and views. What makes no sense is left out: another version may know
// more layers.
func known(pairs []string) (all []resilience.Known) {
	for i := 0; i+1 < len(pairs); i += 2 {
		id, err := parseGate(pairs[i])
		if err != nil {
			continue
		}
		if v, err := parseView(pairs[i+1]); err == nil {
			all = append(all, resilience.Known{Gate: id, View: v})
		}
	}
	return all
}

func gatesOf(texts []string) (ids []resilience.RecordID) {
	for _, s := range texts {
		if id, err := parseGate(s); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// parseNews reads what spread of common.lua publishes: texts with their lengths.
func parseNews(s string) (n resilience.News, err error) {
	r := reader{rest: s}
	n.Life, n.From, n.To = r.text(), r.number(), r.number()
	lists := [4][]string{}
	for i := range lists {
		for range r.number() {
			if r.err != nil {
				break
			}
			lists[i] = append(lists[i], r.text())
		}
	}
	n.Gates, n.Taken, n.Freed, n.Wanted = known(lists[0]), gatesOf(lists[1]), gatesOf(lists[2]), gatesOf(lists[3])
	return n, r.err
}

type reader struct {
	rest string
	err  error
}

var errNews = errors.New("it is no news of a gate")

func (r *reader) text() string {
	length, rest, _ := strings.Cut(r.rest, ":")
	n, err := strconv.ParseUint(length, 10, 31)
	if err != nil || n > uint64(len(rest)) {
		r.rest, r.err = "", errNews
		return ""
	}
	r.rest = rest[n:]
	return rest[:n]
}

func (r *reader) number() int64 {
	n, err := strconv.ParseUint(r.text(), 10, 53)
	if err != nil {
		r.err = errNews
	}
	return int64(n)
}
