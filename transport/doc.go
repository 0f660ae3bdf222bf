// Package transport is OmniRoute inside a Go program: an http.RoundTripper through which an official
// SDK client gets failover over keys, providers and models by changing one line.
//
//	t, err := transport.New(ctx, transport.Options{Upstreams: []transport.Upstream{
//		{Provider: "openai", APIKey: main},
//		{Provider: "openai", APIKey: spare},
//		{Provider: "anthropic", APIKey: other, Model: "claude-sonnet-5"},
//	}})
//	…
//	client := openai.NewClient(option.WithHTTPClient(t.Client()))
//
// A request goes to the first upstream that is well, in the dialect that this one speaks, and the
// answer comes back in the client's. Everything that holds for the gateway holds here, because it
// is the gateway without its listener: nothing of an answer is handed out before its first
// content, what fails until then goes on invisibly, a stream that breaks off afterwards ends with
// an error event, and each failure is put down to the provider, the connection or the model.
//
// The clients' own keys and hosts do not matter: requests go where the upstreams are, with the
// upstreams' keys. Of a request's URL only the path counts, from "/v1" or "/v1beta" on.
//
// Set the client's own retries to zero or leave them: an error answer says how long to wait, and,
// where that is long, tells official clients not to try again.
package transport
