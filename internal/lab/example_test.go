package lab_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"omniroute/internal/lab"
)

// A provider whose first key is rate limited for its first half minute.
func Example() {
	p := lab.New(lab.Options{
		Name: "acme",
		Keys: map[string]string{"secret-1": "main", "secret-2": "spare"},
		Script: []lab.Phase{{
			To:    30 * time.Second,
			Match: lab.OnConnection("main"),
			Fault: lab.RateLimited(lab.RetryAfter(30 * time.Second)),
		}},
		Text: func(p lab.Prompt) string { return "hello from " + p.Connection },
	})
	l := lab.Pipe() // or lab.Listen(p) for a real port
	s := lab.Serve(l, p)
	defer s.Close()
	client := &http.Client{Transport: l.Transport()}

	for _, key := range []string{"secret-1", "secret-2"} {
		req, err := http.NewRequest("POST", s.BaseURL()+"/chat/completions",
			strings.NewReader(`{"model":"large","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.StatusCode, resp.Header.Get("Retry-After"), strings.Contains(string(body), "hello from spare"))
	}
	for _, c := range p.Counts() {
		fmt.Println(c.Connection, c.Model, c.Outcome, c.N)
	}
	// Output:
	// 429 30 false
	// 200  true
	// main large 429 1
	// spare large ok 1
}
