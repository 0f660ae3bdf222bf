package dashboard

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"omniroute/internal/admin"
	"omniroute/resilience"
)

// feed makes views, one for all who watch: a second reader inside the same pace gets the first
// one's. It makes none while nobody watches.
type feed struct {
	o  Options
	mu sync.Mutex

	last   view
	made   time.Time
	now    resilience.Timestamp // the engine's time in the last view
	asked  map[string]admin.Asked
	counts time.Time // when traffic was last put in
	stable map[string]time.Time
	used   map[string]time.Time
}

// slow is how often the traffic is counted again: its steps are ten seconds long.
const slow = 2 * time.Second

func (f *feed) init(o Options) { f.o = o }

// latest returns the view of now, or one that is younger than the pace.
func (f *feed) latest(now time.Time) (view, resilience.Timestamp) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && now.Sub(f.made) < f.o.Pace*9/10 {
		return f.last, f.now
	}
	v := make(view, len(f.last)+16)
	if now.Sub(f.counts) >= slow {
		s := f.o.Admin.Series(now)
		traffic(v, s)
		f.asked, f.counts = s.Providers, now
	} else {
		for key, doc := range f.last {
			if counted(key) {
				v[key] = doc
			}
		}
	}
	f.used = make(map[string]time.Time, len(f.stable))
	st := f.o.Admin.Status()
	f.state(v, st, f.asked)
	f.stable = f.used
	requests(v, f.o.Admin.Stories)
	names(v, f.o.Config())
	f.last, f.made, f.now = v, now, st.Now
	return v, st.Now
}

// counted tells which documents are made of the traffic.
func counted(key string) bool {
	return key == "recent" || len(key) > 2 && (key[:2] == "s:" || key[:2] == "t:")
}

// steady returns a deadline as it was told before unless it has really moved: computed from what is
// left it trembles by some milliseconds, and would be sent each time.
func (f *feed) steady(key string, t time.Time) resilience.Timestamp {
	if t.IsZero() {
		return resilience.Timestamp{}
	}
	const tremble = 50 * time.Millisecond
	if old, ok := f.stable[key]; ok && t.Sub(old).Abs() <= tremble {
		t = old
	}
	f.used[key] = t
	return resilience.Timestamp{Time: t}
}

// change is what turns one view into another.
type change struct {
	Now resilience.Timestamp `json:"now"`
	// Full says that Set is all there is: what the page had before is to be forgotten.
	Full bool                       `json:"full,omitempty"`
	Set  map[string]json.RawMessage `json:"set,omitempty"`
	Del  []string                   `json:"del,omitempty"`
}

// changeOf returns what turns old into v; a nil old is the page's first view.
func changeOf(old, v view) change {
	if old == nil {
		return change{Full: true, Set: v}
	}
	c := change{Set: map[string]json.RawMessage{}}
	for key, doc := range v {
		if before, ok := old[key]; !ok || !bytes.Equal(before, doc) {
			c.Set[key] = doc
		}
	}
	for key := range old {
		if _, ok := v[key]; !ok {
			c.Del = append(c.Del, key)
		}
	}
	return c
}

func (c *change) empty() bool { return !c.Full && len(c.Set) == 0 && len(c.Del) == 0 }
