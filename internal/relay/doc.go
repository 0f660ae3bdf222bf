// Package relay drives the attempt loop over HTTP: it sends what a failover.Request says, holds
// an answer back until its first content, passes it on, and puts a failure into the client's
// dialect.
//
// It judges nothing: whether an answer is good is classify's word, what an event of a stream
// means is the dialect's, what to do next is failover's. Nothing goes to the client before the
// first content of an answer; after it a failure is never hidden.
package relay
