//go:build unix

package server

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// TestMoreThanWasAsked: an upstream that sends a second answer where one was asked for loses its connection. The next
// request gets its own answer over another, and what nobody asked for is in no log.
func TestMoreThanWasAsked(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	answerOf := func(text string) string {
		body := strings.Replace(okAnswer, `"hi"`, fmt.Sprintf("%q", text), 1)
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	const surplus = "meant for somebody else, with the key sk-surplus"
	var asked atomic.Int32
	v.answer = func(string) string {
		if n := asked.Add(1); n > 1 {
			return answerOf(fmt.Sprint("answer ", n))
		}
		return answerOf("answer 1") + answerOf(surplus)
	}
	g := spawn(t, t.TempDir(), yaml("http://"+v.at+"/v1", ""))
	for n := 1; n <= 3; n++ {
		code, text := g.chat("acme/large")
		if want := fmt.Sprint("answer ", n); code != 200 || !strings.Contains(text, want) {
			t.Fatalf("request %d: %d %s", n, code, text)
		}
		if n == 1 { // by then the connection is gone
			g.log.wait(t, "a library of the program says", 1)
		}
	}
	if log := g.log.String(); strings.Contains(log, "surplus") || strings.Contains(log, "somebody else") || !strings.Contains(log, "Unsolicited response") {
		t.Errorf("the log:\n%s", log)
	}
}
