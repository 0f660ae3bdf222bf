// Package cases runs a collection of dialect cases, which is not part of the project, against the
// real gateway: client requests, upstream answers and what clients must see, with a runner of
// their own. Where the folder is not beside the project there is nothing to run.
package cases
