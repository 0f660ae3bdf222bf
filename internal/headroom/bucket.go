package headroom

import "time"

const (
	// figureLife is how long a figure is believed at most. What a header says beyond that, because
	// of a day's limit, a clock that is wrong or another time zone, is asked anew.
	figureLife = 10 * time.Minute
	// undatedLife is how long a figure is believed of which nobody said when it ends.
	undatedLife = time.Minute
	// refillPause is how long a bucket that was full by its own word and is used up since is left
	// alone, until an answer has told its figures.
	refillPause = time.Second
)

// bucket is what is known of one of the upstream's buckets. It is a plain value; time is an
// argument.
type bucket struct {
	label    string
	unit     Unit
	class    string
	refills  bool
	limit    int64 // -1 where it is not known
	left     int64 // by the last figure
	reserved int64 // set aside for attempts whose share the last figure does not have yet
	read     time.Time
	full     time.Time // zero where nobody said when
	sent     time.Time // when the attempt was sent that brought the figure
	rolled   bool      // left counts from when it was filled
}

// take takes in a figure that came with the answer to an attempt that was sent at that time.
func (b *bucket) take(r *Reading, sent, now time.Time) {
	left := r.Remaining
	// The figure of an older attempt may come later than that of a newer one: it tells of before,
	// so that within one round of the bucket it can only lower what is known.
	if b.known(now) && sent.Before(b.sent) && (b.full.IsZero() || now.Before(b.full)) {
		b.left = min(b.left, left)
		return
	}
	b.left, b.read, b.sent, b.rolled = left, now, sent, false
	b.refills = r.Refills
	if r.Limit >= 0 {
		b.limit = r.Limit
	}
	b.full = time.Time{}
	if r.Wait >= 0 {
		b.full = now.Add(r.Wait)
	}
}

// known reports whether the figure is fresh.
func (b *bucket) known(now time.Time) bool {
	age := now.Sub(b.read)
	switch {
	case b.read.IsZero() || age >= figureLife:
		return false
	case b.full.IsZero():
		return age < undatedLife
	case now.Before(b.full):
		return true
	}
	// It has been filled since. Its size is known, and for a while what was sent since.
	return b.limit > 0 && now.Sub(b.full) < undatedLife
}

// state is what is left, and whether the bucket has been filled since its figure came.
func (b *bucket) state(now time.Time) (left int64, filled bool) {
	left = b.left
	if !b.full.IsZero() && !now.Before(b.full) {
		if !b.rolled {
			left = b.limit
		}
		return left - b.reserved, true
	}
	if b.refills && b.left > 0 && b.limit > b.left && now.After(b.read) {
		left += int64(float64(b.limit-b.left) * float64(now.Sub(b.read)) / float64(b.full.Sub(b.read)))
	}
	return left - b.reserved, false
}

// spend takes off what an attempt has used that brought no figure.
func (b *bucket) spend(n int64, now time.Time) {
	if !b.known(now) {
		return
	}
	if _, filled := b.state(now); filled && !b.rolled {
		b.left, b.rolled = b.limit, true
	}
	b.left = max(b.left-n, 0)
}

// hold says until when a request of that size is better not sent; false where it may be.
func (b *bucket) hold(need int64, now time.Time) (time.Time, bool) {
	if need <= 0 || !b.known(now) {
		return time.Time{}, false
	}
	if b.limit > 0 {
		need = min(need, b.limit) // a full bucket takes everything that it ever takes
	}
	left, filled := b.state(now)
	if left >= need {
		return time.Time{}, false
	}
	last := b.read.Add(figureLife)
	switch {
	case filled:
		return now.Add(refillPause), true
	case b.full.IsZero():
		return b.read.Add(undatedLife), true
	case b.full.Before(last):
		last = b.full
	}
	if b.refills && b.left > 0 && b.limit > b.left {
		// What is empty may be filled at once or steadily; what is not empty, and spelled so, steadily.
		t := now.Add(time.Duration(float64(b.full.Sub(b.read)) * float64(need-left) / float64(b.limit-b.left)))
		if t.Before(last) {
			last = t
		}
	}
	return last, true
}

// fraction is what is left as a share of the whole.
func (b *bucket) fraction(now time.Time) (float64, bool) {
	if b.limit <= 0 || !b.known(now) {
		return 0, false
	}
	left, _ := b.state(now)
	return min(max(float64(left)/float64(b.limit), 0), 1), true
}
