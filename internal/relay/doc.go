// Package relay drives the attempt loop over HTTP: it sends what a failover.Request says, holds
// an answer back until its first content, passes it on, and puts a failure into the client's
// dialect.
//
// It judges nothing: whether an answer is good is classify's word, what an event of a stream
// means is the dialect's, what to do next is failover's. Nothing goes to the client before the
// first content of an answer; after it a failure is never hidden.
//
// What one may wonder about:
//
//   - A whole answer where a stream was asked for, and the reverse, is not converted: it counts as
//     malformed, and the next target is asked.
//   - Once every choice has its finish reason the answer is complete, however its bytes end; a
//     terminator that is missing is supplied. A terminator without a finish reason is a cut.
//   - The bytes of events pass as they came, with LF for every line end. Events that have come
//     together leave together; a complete one is never kept while more is waited for.
//   - Each attempt has one timer, armed at its dispatch. Time in which the client does not read
//     counts against nobody, and neither does the request's deadline.
//   - Signs of life before an answer are sent by a timer, and nothing else touches the client's side
//     until it is stopped. They commit a status: a failure after them is an event of the stream.
//   - A client that closes its sending half is taken for one that has left: a server in Go
//     cannot tell them apart.
//   - What has to be sent again because a kept connection was dead goes out on a new one.
package relay
