// Package load sends requests to an OpenAI-compatible gateway at a fixed rate and measures what
// its clients feel.
//
// The loop is open: request n is due at start + n/rate whatever became of those before it, and
// every time is counted from that moment, so that a gateway which stops for a while cannot hide
// behind a client that stopped asking (coordinated omission). How late the generator itself was
// is measured too.
package load
