package alert

import (
	"cmp"
	"slices"
	"time"
)

const (
	// quiet is how long nothing more is said of a subject after something was said of it.
	quiet = 5 * time.Minute
	// proof is how long a combo must be without a target, or have one again, before that is told: cooldowns
	// of a second come and go.
	proof = 10 * time.Second
)

// Subject is what an alert is about.
type Subject struct {
	Event      string `json:"-"` // one of config.AlertEvents
	Provider   string `json:"provider,omitempty"`
	Connection string `json:"connection,omitempty"`
	Combo      string `json:"combo,omitempty"`
}

// Condition is how a subject is: well, or not and why.
type Condition struct {
	Bad  bool
	Kind string // of the failures behind it, empty where there are none
}

// desk decides what is worth telling. A subject's first change is told at once; whatever it does in the quiet time
// after that is told at its end, as one change or, where it is back where it was, not at all. It is a plain value
// without a clock.
type desk struct{ subjects map[Subject]*record }

type record struct {
	told    Condition // what was said last
	now     Condition
	since   time.Time // when now began
	free    time.Time // before it nothing is said
	changes int       // since the last word
}

// report is one thing to tell.
type report struct {
	Subject
	Condition
	since   time.Time
	changes int
}

// begin takes what is so at the start for told: who was paged before a restart need not be again, and is told when it
// is over.
func (d *desk) begin(all map[Subject]Condition, now time.Time) {
	d.subjects = map[Subject]*record{}
	for s, c := range all {
		d.subjects[s] = &record{told: c, now: c, since: now}
	}
}

// update takes in how all subjects are and returns what is to be told now. Subjects that are not in all are gone, and
// nothing is said of them any more.
func (d *desk) update(all map[Subject]Condition, now time.Time) []report {
	for s := range d.subjects {
		if _, still := all[s]; !still {
			delete(d.subjects, s)
		}
	}
	for s, c := range all {
		r := d.subjects[s]
		if r == nil {
			r = &record{since: now}
			d.subjects[s] = r
		}
		if r.now.Bad != c.Bad {
			r.since = now
			r.changes++
		}
		r.now = c
	}
	return d.due(now, false)
}

// due returns what is to be told by now; with all set also what waits for the end of a quiet time.
func (d *desk) due(now time.Time, all bool) (out []report) {
	for s, r := range d.subjects {
		if r.now.Bad == r.told.Bad {
			if !now.Before(r.free) {
				r.changes = 0
			}
			continue
		}
		if !all && now.Before(r.at(s)) {
			continue
		}
		out = append(out, report{s, r.now, r.since, r.changes})
		if !r.now.Bad {
			out[len(out)-1].Kind = r.told.Kind
		}
		r.told, r.free, r.changes = r.now, now.Add(quiet), 0
	}
	slices.SortFunc(out, func(a, b report) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Combo, b.Combo))
	})
	return out
}

// at is when a change that has not been told may be.
func (r *record) at(s Subject) time.Time {
	at := r.free
	if s.Combo != "" {
		if held := r.since.Add(proof); held.After(at) {
			at = held
		}
	}
	return at
}

// next returns when something may be due, and false when nothing waits.
func (d *desk) next() (next time.Time, waits bool) {
	for s, r := range d.subjects {
		if at := r.at(s); r.now.Bad != r.told.Bad && (!waits || at.Before(next)) {
			next, waits = at, true
		}
	}
	return next, waits
}
