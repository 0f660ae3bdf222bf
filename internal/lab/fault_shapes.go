package lab

import "time"

// CutStyle is how a connection ends in the middle of an answer.
type CutStyle uint8

// The styles of a cut.
const (
	// CutReset is a TCP reset, in the middle of an event.
	CutReset CutStyle = iota
	// CutFIN closes the connection in good order, but in the middle of an event and of the chunked
	// coding, or before the promised length.
	CutFIN
	// CutQuiet ends the HTTP answer properly; only the stream's own end is missing.
	CutQuiet
	// CutUnframed is a FIN at the end of an answer that has no other framing than the connection's
	// end, so that HTTP cannot notice the cut.
	CutUnframed
)

// SlowHeaders waits before the status line, of refusals too.
func SlowHeaders(d time.Duration) Fault {
	return shapes("slow-headers", func(p *plan) { p.headers = d })
}

// SlowFirstContent sends the headers at once, and the first content after d. A positive ping sends
// comments meanwhile, that far apart; only streams have them.
func SlowFirstContent(d, ping time.Duration) Fault {
	return shapes("slow-first-token", func(p *plan) { p.slow, p.firstContent, p.ping = true, d, ping })
}

// SlowContent sets the wait between two pieces of content.
func SlowContent(gap time.Duration) Fault {
	return shapes("slow-content", func(p *plan) { p.gap = gap })
}

// Cut ends the connection after so many pieces of content. A plain answer is cut in its middle.
func Cut(after int, style CutStyle) Fault {
	return shapes("cut", func(p *plan) { p.end, p.after, p.style = endCut, after, style })
}

// Stall falls silent after so many pieces of content and keeps the connection open until the client
// leaves. A positive ping sends comments meanwhile. A plain answer stalls in its middle.
func Stall(after int, ping time.Duration) Fault {
	return shapes("stall", func(p *plan) { p.end, p.after, p.stallPing = endStall, after, ping })
}

// ErrorEvent sends an error inside the 200 after so many pieces of content (0: as the first event)
// and ends the stream there. A plain answer is the error's envelope with status 200.
func ErrorEvent(after int, e Error) Fault {
	return shapes("error-event", func(p *plan) { p.end, p.after, p.err = endError, after, e })
}

// BadEvent breaks the n-th event of a stream (1 is the first) so that it does not parse, and goes
// on. A plain answer is JSON that ends too early, under a correct length.
func BadEvent(n int) Fault {
	return shapes("malformed", func(p *plan) { p.badEvent = n })
}

// NoDone leaves out [DONE]; the finish reason is there.
func NoDone() Fault { return shapes("no-done", func(p *plan) { p.noDone = true }) }

// NoFinish leaves out the finish reason and everything after it. HTTP ends well.
func NoFinish() Fault {
	return shapes("no-finish", func(p *plan) { p.noDone, p.noFinish = true, true })
}

// NoContent answers 200 with a stream that has a role and an end but no content, and no usage. A
// plain answer has an empty text.
func NoContent() Fault { return shapes("no-content", func(p *plan) { p.noContent = true }) }

// NoChoices answers 200 with choices: [].
func NoChoices() Fault { return shapes("no-choices", func(p *plan) { p.noChoices = true }) }

// Gzip compresses the answer whether or not the client asked for that.
func Gzip() Fault { return shapes("gzip", func(p *plan) { p.gzip = true }) }
