package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"omniroute/internal/config"
)

const (
	// sessionTime is how long a sign-in lasts.
	sessionTime = 12 * time.Hour
	// maxRevoked bounds how many signed-out sessions are remembered.
	maxRevoked = 10_000
	// relearn is how often the trail is asked for sessions that ended elsewhere.
	relearn = 15 * time.Second
)

// sessions makes and checks the values of sign-in cookies. A value is "expiry.id.mac": it is signed
// with a key that comes from the admin token, so that it outlives a restart and dies with the token.
// It is safe for concurrent use.
type sessions struct {
	mu sync.Mutex
	// revoked are the ids of sessions that were signed out, with their expiry.
	revoked map[string]int64

	// What was signed out before a restart, or at another gateway of a cluster, the trail knows.
	learning sync.Mutex
	learned  time.Time // when the trail was last asked
	whole    bool      // it has told all that it will ever tell
}

// learn takes in the sessions that ended elsewhere, by what ended tells of them: those since a time, and whether there
// may be more later. It asks at the first call, and then only as often as it must.
func (s *sessions) learn(now time.Time, ended func(since time.Time) (all map[string]time.Time, more bool)) {
	s.learning.Lock()
	defer s.learning.Unlock()
	if s.whole || !s.learned.IsZero() && now.Sub(s.learned) < relearn {
		return
	}
	all, more := ended(now.Add(-sessionTime))
	s.learned, s.whole = now, !more
	for id, at := range all {
		s.revoke(session{id: id, expires: at.Add(sessionTime)}, now)
	}
}

// session is one sign-in.
type session struct {
	id      string
	expires time.Time
	key     []byte
}

// keyOf derives the signing key from the admin token.
func keyOf(token config.Secret) []byte {
	return mac([]byte(token.Reveal()), "omniroute dashboard session 1")
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// open returns a new session and its cookie's value.
func (*sessions) open(token config.Secret, now time.Time) (session, string) {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	x := session{id: encode(id), expires: now.Add(sessionTime).Truncate(time.Second), key: keyOf(token)}
	signed := strconv.FormatInt(x.expires.Unix(), 10) + "." + x.id
	return x, signed + "." + encode(mac(x.key, signed))
}

// check returns the session of a cookie's value, and whether it is good.
func (s *sessions) check(token config.Secret, value string, now time.Time) (session, bool) {
	i := strings.LastIndexByte(value, '.')
	if i < 0 || len(value) > 200 {
		return session{}, false
	}
	signed, key := value[:i], keyOf(token)
	if subtle.ConstantTimeCompare([]byte(encode(mac(key, signed))), []byte(value[i+1:])) != 1 {
		return session{}, false
	}
	text, id, _ := strings.Cut(signed, ".")
	expires, err := strconv.ParseInt(text, 10, 64)
	if err != nil || now.Unix() >= expires {
		return session{}, false
	}
	if s.over(id) {
		return session{}, false
	}
	return session{id: id, expires: time.Unix(expires, 0), key: key}, true
}

// over reports whether a session was signed out.
func (s *sessions) over(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, out := s.revoked[id]
	return out
}

// revoke ends a session.
func (s *sessions) revoke(x session, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revoked == nil {
		s.revoked = map[string]int64{}
	}
	if len(s.revoked) >= maxRevoked {
		maps.DeleteFunc(s.revoked, func(_ string, expires int64) bool { return expires <= now.Unix() })
	}
	if len(s.revoked) >= maxRevoked { // whoever did that holds the token
		clear(s.revoked)
	}
	s.revoked[x.id] = x.expires.Unix()
}

// csrf is what every change must carry beside the cookie: another site can make a browser send the
// cookie, but cannot read this.
func (x session) csrf() string { return encode(mac(x.key, "csrf "+x.id)) }

// matches reports whether presented is the session's token, in constant time.
func (x session) matches(presented string) bool {
	return subtle.ConstantTimeCompare([]byte(x.csrf()), []byte(presented)) == 1
}
