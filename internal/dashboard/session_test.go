package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniroute/internal/config"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestSessionsOutliveTheProcess: a session is good for twelve hours and for as long as the token is the
// same, whichever process is asked.
func TestSessionsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	secret := config.NewSecret(token)
	var before, after sessions
	x, value := before.open(secret, noon)
	for at, good := range map[time.Duration]bool{0: true, 11*time.Hour + 59*time.Minute: true, 12 * time.Hour: false, 100 * time.Hour: false} {
		if _, ok := after.check(secret, value, noon.Add(at)); ok != good {
			t.Errorf("after %v: %v, want %v", at, ok, good)
		}
	}
	if _, ok := after.check(config.NewSecret("another"), value, noon); ok {
		t.Error("it outlives its token")
	}
	y, ok := after.check(secret, value, noon)
	if !ok || y.csrf() != x.csrf() || !x.matches(y.csrf()) || x.matches("") {
		t.Error("the token of changes does not outlive the process")
	}
	if _, other := before.open(secret, noon); other == value {
		t.Error("two sessions are the same")
	}
	after.revoke(y, noon)
	if _, ok := after.check(secret, value, noon); ok {
		t.Error("it is good after it was ended")
	}
	if strings.Contains(value, token) {
		t.Error("the cookie holds the token")
	}
}

// TestForgedSessions: no change of a cookie's value is good.
func TestForgedSessions(t *testing.T) {
	t.Parallel()
	secret := config.NewSecret(token)
	var s sessions
	_, value := s.open(secret, noon)
	rapid.Check(t, func(t *rapid.T) {
		forged := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			b := []byte(value)
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			return string(b)
		}), rapid.Map(rapid.Int64Range(noon.Unix(), noon.Unix()*2), func(expires int64) string {
			return fmt.Sprint(expires) + value[strings.IndexByte(value, '.'):]
		}), rapid.Just(""), rapid.Just(".."), rapid.Just(value+"A")).Draw(t, "value")
		if _, ok := s.check(secret, forged, noon); ok && forged != value {
			t.Errorf("%q is good", forged)
		}
	})
}

// TestSessionsLearn asks at once, again only after a while, and no more once it has been told everything.
func TestSessionsLearn(t *testing.T) {
	t.Parallel()
	secret := config.NewSecret(token)
	var s sessions
	x, value := s.open(secret, noon)
	asked := 0
	tell := func(more bool, all map[string]time.Time) func(time.Time) (map[string]time.Time, bool) {
		return func(since time.Time) (map[string]time.Time, bool) {
			asked++
			return all, more
		}
	}
	for _, c := range []struct {
		at    time.Duration
		more  bool
		ended bool
		asked int
		good  bool
	}{
		{0, true, false, 1, true},
		{relearn - 1, false, true, 1, true},
		{relearn, true, true, 2, false},
		{2 * relearn, false, false, 3, false},
		{time.Hour, false, true, 3, false},
	} {
		ended := map[string]time.Time{}
		if c.ended {
			ended[x.id] = noon
		}
		s.learn(noon.Add(c.at), tell(c.more, ended))
		if _, good := s.check(secret, value, noon.Add(c.at)); good != c.good || asked != c.asked {
			t.Errorf("after %v: asked %d times, the session is good: %v", c.at, asked, good)
		}
	}
}

func TestRevokedAreBounded(t *testing.T) {
	t.Parallel()
	var s sessions
	for i := range maxRevoked + 10 {
		s.revoke(session{id: fmt.Sprint(i), expires: noon.Add(sessionTime)}, noon)
	}
	if len(s.revoked) > maxRevoked {
		t.Error(len(s.revoked))
	}
	for i := range maxRevoked {
		s.revoke(session{id: fmt.Sprint("later", i), expires: noon.Add(100 * time.Hour)}, noon.Add(13*time.Hour))
	}
	if len(s.revoked) != maxRevoked {
		t.Errorf("%d, although those that are over make room", len(s.revoked))
	}
}
