// Package neutral is the one form through which requests, answers and the events of streamed
// answers go from one dialect to another. Each dialect reads it and writes it; no dialect
// knows another one.
//
// The form holds what two or more dialects share. What only one has is either a hint, which is
// dropped, or part of what is asked for: then the request says so in Native, and no other
// dialect can take it. A writer that cannot express a part of the form returns an
// *UnsupportedError that names the client's field. Values that nobody needs to understand
// (schemas, arguments of calls, numbers) keep the bytes that they came in.
package neutral
