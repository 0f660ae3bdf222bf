package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/config"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestGuesses are few from one address and from all together, and nobody pays for what is no guess.
func TestGuesses(t *testing.T) {
	t.Parallel()
	var g guesses
	n, secret := 0, config.NewSecret(token)
	wrong := func(peer string, now time.Time) (guess, time.Duration) {
		n++
		return g.try(secret, peer, fmt.Sprint("wrong", n), now)
	}
	for range burstOne {
		if got, w := wrong("192.0.2.1:1", noon); got != wrongToken || w != 0 {
			t.Fatal(got, w)
		}
	}
	if got, w := wrong("192.0.2.1:2", noon); got != notLooked || w != pauseOne {
		t.Errorf("%v after %v, want a wait of %v", got, w, pauseOne)
	}
	if got, _ := g.try(secret, "192.0.2.1:2", token, noon); got != notLooked {
		t.Error("who guesses too fast is told when the guess is right")
	}
	if got, _ := g.try(secret, "192.0.2.1:2", fmt.Sprint("wrong", burstOne), noon); got != sameWrongToken {
		t.Errorf("the same wrong token again is %v", got)
	}
	if got, _ := wrong("192.0.2.2:1", noon); got != wrongToken {
		t.Error("another address pays for it")
	}
	if got, _ := wrong("192.0.2.1:2", noon.Add(pauseOne)); got != wrongToken {
		t.Error("after the pause there is no guess")
	}
	for i := range burstOne { // one network of one owner
		wrong(fmt.Sprintf("[2001:db8::%d]:1", i), noon)
	}
	if got, _ := wrong("[2001:db8::ffff]:1", noon); got != notLooked {
		t.Error("every address of a /64 has guesses of its own")
	}
}

// TestGuessesFromEverywhere are few too, and keep nobody out who has been in.
func TestGuessesFromEverywhere(t *testing.T) {
	t.Parallel()
	var g guesses
	secret := config.NewSecret(token)
	if got, _ := g.try(secret, "192.0.2.1:1", token, noon); got != rightToken {
		t.Fatal(got)
	}
	looked := 0
	for i := range 10_000 {
		if got, _ := g.try(secret, fmt.Sprintf("10.0.%d.%d:1", i/256, i%256), fmt.Sprint("wrong", i), noon); got != notLooked {
			looked++
		}
	}
	if looked > burstAll || len(g.one) > maxAddresses {
		t.Errorf("%d guesses from everywhere at once, %d addresses kept", looked, len(g.one))
	}
	for peer, want := range map[string]guess{"192.0.2.1:2": rightToken, "127.0.0.1:2": rightToken, "198.51.100.1:1": notLooked} {
		if got, _ := g.try(secret, peer, token, noon); got != want {
			t.Errorf("%s with the right token: %v, want %v", peer, got, want)
		}
	}
	if got, _ := g.try(secret, "192.0.2.1:2", token, noon.Add(knownFor)); got != rightToken {
		t.Error("guesses do not come back")
	}
}

// TestARightTokenWasWrongBefore: what was refused before a reload that made it the token opens the door.
func TestARightTokenWasWrongBefore(t *testing.T) {
	t.Parallel()
	var g guesses
	if got, _ := g.try(config.NewSecret("old"), "192.0.2.1:1", "new", noon); got != wrongToken {
		t.Fatal(got)
	}
	if got, _ := g.try(config.NewSecret("new"), "192.0.2.1:1", "new", noon); got != rightToken {
		t.Error(got)
	}
}

// TestAdminGuessesAreFew: after five wrong tokens nobody looks at the next, and the answer says for how long.
func TestAdminGuessesAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, world+"admin_token: "+token+"\n", nil)
		ask := func(token string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", "/admin/v1/status", nil)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			b.ServeHTTP(w, r)
			return w
		}
		for i := range 20 {
			for _, c := range []struct {
				token string
				want  int
			}{{"", 401}, {"an old one", 401}, {token, 200}} {
				if w := ask(c.token); w.Code != c.want {
					t.Fatalf("%q for the %dth time: %d", c.token, i+1, w.Code)
				}
			}
		}
		for i := range burstOne - 1 {
			if w := ask(fmt.Sprint("wrong", i)); w.Code != 401 {
				t.Fatalf("guess %d: %d", i+2, w.Code)
			}
		}
		w := ask(token)
		seconds, _ := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != http.StatusTooManyRequests || seconds < 1 || seconds > 12 {
			t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
		if w := ask(token); w.Code != 200 {
			t.Errorf("after the wait: %d %s", w.Code, w.Body)
		}
	})
}
