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

func TestLimiter(t *testing.T) {
	t.Parallel()
	var l limiter
	now := noon
	for range burstOne {
		if w := l.take("192.0.2.1:1", now); w != 0 {
			t.Fatal(w)
		}
	}
	if w := l.take("192.0.2.1:2", now); w != pauseOne {
		t.Errorf("wait %v, want %v", w, pauseOne)
	}
	if w := l.take("192.0.2.2:1", now); w != 0 {
		t.Errorf("another address waits %v", w)
	}
	if w := l.take("192.0.2.1:2", now.Add(pauseOne)); w != 0 {
		t.Errorf("after the pause it waits %v", w)
	}
	for i := range burstOne { // one network of one owner
		l.take(fmt.Sprintf("[2001:db8::%d]:1", i), now)
	}
	if w := l.take("[2001:db8::ffff]:1", now); w == 0 {
		t.Error("every address of a /64 has guesses of its own")
	}
	n := 0
	for i := range 10_000 {
		if l.take(fmt.Sprintf("10.0.%d.%d:1", i/256, i%256), now) == 0 {
			n++
		}
	}
	if n > burstAll || len(l.one) > maxAddresses {
		t.Errorf("%d guesses from everywhere at once, %d addresses kept", n, len(l.one))
	}
	l.giveBack("192.0.2.1:2", now)
}
