// Package headroom knows what an upstream will still take from an account: from the rate-limit
// headers of its answers, less what has been sent since, and where an upstream sends none from its
// refusals.
//
// It promises never to make an outage: what it says is a reason to ask another target first or to
// wait a little, and every figure of it is forgotten soon. It excludes nobody, keeps nothing over a
// restart, reads no clock and starts nothing.
package headroom
