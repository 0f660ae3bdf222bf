package headroom

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxWait bounds what a header may say of the time until a bucket is full. Beyond it the header is
// wrong.
const maxWait = 366 * 24 * time.Hour

// serverClock reads points in time as the upstream means them: by its own clock, which its Date
// header shows, since ours and its may differ by minutes.
type serverClock struct {
	header http.Header
	now    time.Time
	read   bool
}

func (c *serverClock) time() time.Time {
	if !c.read {
		c.read = true
		if d := c.header["Date"]; len(d) > 0 {
			if t, err := http.ParseTime(d[0]); err == nil {
				c.now = t
			}
		}
	}
	return c.now
}

// wait reads how long until a bucket is full: a duration ("6m0s", "120ms"), a number of seconds, a
// Unix time in seconds or milliseconds, a date. It returns -1 for anything else. spelled says that
// it was a duration with units: whoever writes those means a bucket that fills steadily.
func (c *serverClock) wait(v string) (d time.Duration, spelled bool) {
	v = strings.TrimSpace(v)
	if v == "" {
		return -1, false
	}
	last := v[len(v)-1]
	if last == 's' || last == 'm' || last == 'h' {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 || d > maxWait {
			return -1, false
		}
		return d, true
	}
	if f, err := strconv.ParseFloat(v, 64); err == nil {
		switch {
		case !(f >= 0):
			return -1, false
		case f < 1e9:
			return seconds(f), false
		case f < 1e11:
			return c.until(time.Unix(int64(f), 0)), false
		case f < 1e14:
			return c.until(time.UnixMilli(int64(f))), false
		}
		return -1, false
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return c.until(t), false
	}
	if t, err := http.ParseTime(v); err == nil {
		return c.until(t), false
	}
	return -1, false
}

func seconds(f float64) time.Duration {
	if f > maxWait.Seconds() {
		return -1
	}
	return time.Duration(f * float64(time.Second))
}

func (c *serverClock) until(t time.Time) time.Duration {
	d := t.Sub(c.time())
	if d > maxWait {
		return -1
	}
	return max(d, 0)
}
