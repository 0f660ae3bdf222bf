package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"omniroute/internal/lab"
	"omniroute/transport"
)

// The first account is rate limited. An SDK would be given t.Client(); here a plain request shows
// what it would see.
func Example() {
	provider := lab.New(lab.Options{
		Keys:   map[string]string{"key-1": "main", "key-2": "spare"},
		Script: []lab.Phase{{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(30 * time.Second))}},
	})
	upstream, err := lab.Listen(provider)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer upstream.Close()

	ctx := context.Background()
	t, err := transport.New(ctx, transport.Options{Upstreams: []transport.Upstream{
		{Provider: "acme", Dialect: "openai", BaseURL: upstream.BaseURL(), Connection: "main", APIKey: "key-1"},
		{Provider: "acme", Dialect: "openai", BaseURL: upstream.BaseURL(), Connection: "spare", APIKey: "key-2"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close(ctx)

	resp, err := t.Client().Post("https://api.openai.com/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"large","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.StatusCode == http.StatusOK, resp.Header.Get("x-omniroute-connection"), resp.Header.Get("x-omniroute-attempts"))
	for _, p := range t.Engine().Status().Providers {
		for _, c := range p.Connections {
			fmt.Println(c.ID, c.State)
		}
	}
	// Output:
	// true spare 2
	// main cooling
	// spare ready
}
