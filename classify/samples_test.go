package classify

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"omniroute/resilience"
)

func TestSamplesKeepWhatNoRuleKnew(t *testing.T) {
	t.Parallel()
	c, s := classifier(t), NewSamples(3)
	add := func(status int, body string, at int) bool {
		in := Input{Provider: "acme", Status: status, Body: []byte(body), Now: exampleNow.Add(time.Duration(at) * time.Second), Header: http.Header{}}
		return s.Add(in, c.Classify(in))
	}
	if add(429, `{"error":{"code":"rate_limit_exceeded"}}`, 0) {
		t.Error("an answer that a rule knows was sampled")
	}
	for i := range 3 {
		add(400, fmt.Sprintf(`{"error":{"message":"Say please, caller %d"}}`, i), i)
	}
	add(456, `{"oops":1}`, 4)
	add(403, ``, 5)
	add(500, `{"oops":2}`, 6)
	got := s.List()
	if len(got) != 3 || got[0].Status != 500 || got[2].Status != 456 {
		t.Fatalf("want the three newest shapes, newest first, got %+v", got)
	}
	if n := s.Counts()["default.400_said"]; n != 3 {
		t.Errorf("default.400_said counted %d times, want 3", n)
	}
	add(456, `{"oops":7}`, 9)
	if got := s.List()[0]; got.Count != 2 || got.Status != 456 {
		t.Errorf("answers of one shape are one sample with a count, got %+v", got)
	}
}

func TestSamplesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	c, s := classifier(t), NewSamples(0)
	secrets := []string{"sk-proj-abcdefghijklmnop1234", "AIzaSyA1234567890abcdefghijklmnopqrstuv", "someone@example.com", "10.1.2.3", "token=abcdef", "eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl", "tell me about my neighbour", "0123456789abcdef0123456789abcdef", "hunter2hunter2"}
	body := `{"error":{"message":"Strange ` + strings.Join(secrets[:6], " and ") + ` ` + secrets[7] + ` https://x.example/a?` + secrets[4] + `","echo":"` + secrets[6] + `","api_key":"` + secrets[8] + `","input":{"a":["` + secrets[6] + `"]}}}`
	in := Input{Provider: "acme", Status: 400, Body: []byte(body), Now: exampleNow}
	if !s.Add(in, c.Classify(in)) {
		t.Fatal("not sampled")
	}
	got := s.List()[0].Body
	for _, secret := range secrets {
		if strings.Contains(got, secret) {
			t.Errorf("the sample still holds %q: %s", secret, got)
		}
	}
	if !strings.Contains(got, "Strange") {
		t.Errorf("the upstream's words are gone: %s", got)
	}
}

func TestSamplesAreBounded(t *testing.T) {
	t.Parallel()
	s := NewSamples(8)
	c := classifier(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				in := Input{Provider: fmt.Sprint("p", w, "-", i), Status: 400, Body: []byte(`{"error":{"message":"` + strings.Repeat("x ", 20<<10) + `"}}`), Now: exampleNow}
				s.Add(in, c.Classify(in))
			}
		})
	}
	wg.Wait()
	list := s.List()
	if len(list) != 8 {
		t.Errorf("%d samples are kept, want 8", len(list))
	}
	for _, l := range list {
		if len(l.Body) > maxSampleBody {
			t.Errorf("a sample of %d bytes", len(l.Body))
		}
	}
	if n := s.Counts()["default.400_said"]; n != 40 {
		t.Errorf("%d counted, want 40", n)
	}
}

// A classifier that tells of its failures judges like any other, and says nothing of what is well.
func TestNotingTellsOfFailuresOnly(t *testing.T) {
	t.Parallel()
	plain := classifier(t)
	var told []string
	c := plain.Noting(func(in Input, v resilience.Verdict) { told = append(told, fmt.Sprintf("%d %s", in.Status, v.Rule)) })
	for _, in := range []Input{
		{Status: 200, Body: []byte(`{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`), Now: exampleNow},
		{Status: 456, Body: []byte(`{"oops":1}`), Now: exampleNow},
		{Status: 429, Body: []byte(`{"error":{"code":"rate_limit_exceeded"}}`), Now: exampleNow},
		{Phase: PhaseDial, Err: &TimeoutError{Phase: PhaseDial}, Now: exampleNow},
	} {
		if got, want := c.Classify(in), plain.Classify(in); got != want {
			t.Errorf("noting changes the verdict: %+v, want %+v", got, want)
		}
	}
	if len(told) != 3 || !strings.HasPrefix(told[0], "456 default.") || !strings.HasPrefix(told[1], "429 code.") {
		t.Errorf("told of %q", told)
	}
}
