// Package seam joins an answer that broke off with the one that finishes it.
//
// A client has the beginning of a text; another attempt either goes on from it or says it all
// again. Sent keeps what the client has, Seam compares texts, and Join does so within the events
// of a streamed answer: it lets through what is new, byte for byte after what was sent, and
// nothing where that is not certain. Follower does the keeping for a stream that passes through.
//
// What counts is the decoded text, so that chunks, escapes and the upstream's dialect make no
// difference. Everything here is pure: no I/O, no clock.
//
// What one may wonder about:
//
//   - Only an answer of one text can be joined, with thoughts before it or without. A call, a
//     refusal, a second text or a thought behind the text rules it out, and so does anything that
//     the dialects do not share.
//   - White space at the end of what was sent is not given to a model to go on from: some refuse
//     it, others go on differently after it. The model has to write it again, and exactly so.
//   - A text that goes on from a word with a letter is not joined: the space may have been lost
//     on the way, as some servers do, or the word may go on. Nobody can tell.
package seam
