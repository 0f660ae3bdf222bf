// Package lab holds AI providers that fail on purpose.
//
// A [Provider] speaks the OpenAI protocol over HTTP: chat completions, plain and streamed, tool
// calls, text completions, embeddings and the list of models. It does so well until its script, a
// limit or the name of the asked model tells it to fail, and then it fails the way real services
// do: at the level of status and headers, of the TCP connection, or in the middle of a stream. It
// counts what reaches it, so that a test can say how often an upstream was really called.
//
// It runs on real sockets ([Listen], [Serve]) and on in-memory connections ([Pipe], [Net]). On the
// latter it runs on virtual time: inside a testing/synctest bubble an outage of an hour passes in
// a millisecond, because nothing here waits by other means than timers, channels and contexts.
//
// Everything random is drawn from the seed and from the number of the call on its target, so a run
// repeats itself whatever the order in which requests to different targets arrive. There is no global state.
//
// [Demo] puts two such providers on loopback, each with a schedule of failures that comes round
// every 100 seconds, and a third whose models are the faults.
//
// The package must never be reachable in a serving binary but through the demo.
package lab
