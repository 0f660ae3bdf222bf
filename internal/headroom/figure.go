package headroom

import (
	"strings"
	"time"
)

// Figure is what is known of one bucket now, for people.
type Figure struct {
	// Bucket names it as the headers do, in lower case.
	Bucket string
	// Limit is its size, 0 where that is not known, and Remaining what is left of it, less what is on its
	// way.
	Limit, Remaining int64
	// Full is when it will be full again, zero where that is not known.
	Full time.Time
	// Guess says that it was learned from refusals.
	Guess bool
}

// Figures returns the fresh figures of the model alone. It changes nothing.
func (m *Meter) Figures(now time.Time) []Figure {
	m.account.mu.Lock()
	defer m.account.mu.Unlock()
	return figures(m.buckets, &m.learned, now)
}

// Figures returns the fresh figures of the account as a whole. It changes nothing.
func (a *Account) Figures(now time.Time) []Figure {
	a.mu.Lock()
	defer a.mu.Unlock()
	return figures(a.buckets, &a.learned, now)
}

func figures(buckets []bucket, l *learned, now time.Time) (out []Figure) {
	counted := false
	for i := range buckets {
		b := &buckets[i]
		if !b.known(now) {
			continue
		}
		counted = counted || b.unit == Requests
		left, _ := b.state(now)
		f := Figure{Bucket: b.name(), Limit: max(b.limit, 0), Remaining: max(left, 0)}
		if now.Before(b.full) {
			f.Full = b.full
		}
		out = append(out, f)
	}
	if most, known := l.most(now); known && !counted {
		out = append(out, Figure{Bucket: "requests a minute, learned", Limit: int64(most), Remaining: int64(max(most-l.sum(now), 0)), Guess: true})
	}
	return out
}

// name is the bucket's name for people.
func (b *bucket) name() string {
	name := strings.ToLower(strings.ReplaceAll(b.label, "-", " "))
	switch {
	case b.unit == Share:
		return strings.TrimSpace(name + " window of the plan")
	case name == "":
		return unitNames[b.unit]
	}
	return name
}
