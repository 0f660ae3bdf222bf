package classify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"omniroute/resilience"
)

// TimeoutError is a timer of the caller that ran out while the upstream had the turn. Timers
// that guard the caller's own time (its deadline, its queue) are not reported as one.
type TimeoutError struct {
	Phase Phase
	// Timer names it as the configuration does: "first_token_timeout", "idle_timeout".
	Timer string
	After time.Duration
}

// Error names the timer, its length and where the attempt stood.
func (e *TimeoutError) Error() string {
	name := e.Timer
	if name == "" {
		name = "timeout"
	}
	return fmt.Sprintf("%s of %v ran out (%v)", name, e.After, e.Phase)
}

// Timeout makes it a timeout for net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// CutError is an answer that ended before its finish reason or its declared length.
type CutError struct {
	// Content says whether some of it had gone to the client.
	Content bool
	Err     error // the transport's, nil when the upstream closed in good order
}

// Error says that the answer was cut short.
func (e *CutError) Error() string {
	if e.Err != nil {
		return "the answer was cut short: " + e.Err.Error()
	}
	return "the answer ended without a finish reason"
}

// Unwrap returns the transport's error.
func (e *CutError) Unwrap() error { return e.Err }

// LocalError is a failure on our side of the attempt: writing to the client, a local queue, a
// local resource. It punishes nobody.
type LocalError struct {
	Op  string // what was being done: "write to the client"
	Err error
}

// Error names the operation and its cause.
func (e *LocalError) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LocalError) Unwrap() error { return e.Err }

// transport judges an attempt that ended with an error instead of an answer. The order counts:
// what is ours first, then what the caller did, then what did not come about, then the rest.
func transport(in Input) resilience.Verdict {
	err := in.Err
	v := func(rule string, s resilience.Scope, k resilience.Kind) resilience.Verdict {
		neutral := s == resilience.ScopeClient || s == resilience.ScopeLocal
		return resilience.Verdict{Scope: s, Kind: k, Rule: "transport." + rule, Evidence: evidenceOf(in.Phase, err),
			RetrySame: !neutral, RetryElsewhere: !neutral}
	}
	var local *LocalError
	var timeout *TimeoutError
	switch {
	case errors.As(err, &local), isLocalErrno(err):
		return v("local", resilience.ScopeLocal, resilience.KindNetwork)
	case errors.As(err, &timeout):
		t := v("timeout", resilience.ScopeProvider, resilience.KindTimeout)
		t.Dial = timeout.Phase == PhaseDial || in.Phase == PhaseDial
		return t
	case errors.Is(err, context.Canceled):
		return v("canceled", resilience.ScopeClient, resilience.KindCanceled)
	}
	if d, rule, kind := dialFailure(in.Phase, err); d {
		t := v(rule, resilience.ScopeProvider, kind)
		t.Dial = true
		return t
	}
	var ne net.Error
	switch {
	case isTLS(err):
		t := v("tls", resilience.ScopeProvider, resilience.KindNetwork)
		// A certificate that does not verify will not verify in a second either.
		t.RetrySame = !isCertificate(err)
		return t
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded):
		// The request's own deadline: neutral, as every local timeout (A9).
		return v("deadline", resilience.ScopeLocal, resilience.KindTimeout)
	case errors.As(err, &ne) && ne.Timeout():
		return v("timeout", resilience.ScopeProvider, resilience.KindTimeout)
	case has(err, "http: server closed idle connection", "http2: server sent goaway", "goaway", "refused_stream", "http2: client connection lost", "http2: client connection force closed", "connection is shutting down"):
		return v("closing", resilience.ScopeProvider, resilience.KindNetwork)
	case has(err, "stream error", "http2:", "internal_error", "protocol_error", "enhance_your_calm"):
		return v("http2", resilience.ScopeProvider, resilience.KindNetwork)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED), has(err, "connection reset", "broken pipe"):
		return v("reset", resilience.ScopeProvider, resilience.KindNetwork)
	case has(err, "malformed http", "malformed mime", "invalid header", "bad chunk", "invalid byte in chunk", "malformed chunked", "transfer encoding", "server gave http response to https client", "too many transfer", "content-length"):
		return v("protocol", resilience.ScopeProvider, resilience.KindMalformedResponse)
	case errors.As(err, new(*CutError)), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, http.ErrBodyReadAfterClose), has(err, "eof"):
		return v("cut", resilience.ScopeProvider, resilience.KindNetwork)
	}
	return v("unknown", resilience.ScopeProvider, resilience.KindNetwork)
}

// isLocalErrno reports whether this machine ran out of something or lost its own interface.
func isLocalErrno(err error) bool {
	for _, e := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, syscall.EACCES, syscall.EPERM, syscall.ENOSPC} {
		if errors.Is(err, e) {
			return true
		}
	}
	return has(err, "too many open files", "no buffer space available", "cannot assign requested address")
}

// dialFailure reports whether no connection came about, so that nothing was sent.
func dialFailure(phase Phase, err error) (dial bool, rule string, kind resilience.Kind) {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return true, "dns", resilience.KindNetwork
	case errors.Is(err, syscall.ECONNREFUSED), has(err, "connection refused"):
		return true, "refused", resilience.KindNetwork
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN), errors.Is(err, syscall.ENETDOWN), has(err, "no route to host", "network is unreachable"):
		return true, "unreachable", resilience.KindNetwork
	case has(err, "no such host", "server misbehaving", "temporary failure in name resolution"):
		return true, "dns", resilience.KindNetwork
	case has(err, "proxyconnect", "socks connect"):
		return true, "proxy", resilience.KindNetwork
	}
	dialing := errors.As(err, &op) && op.Op == "dial"
	if !dialing && phase != PhaseDial {
		return false, "", 0
	}
	var ne net.Error
	switch {
	case isTLS(err):
		return false, "", 0
	case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return true, "dial_timeout", resilience.KindTimeout
	case dialing:
		return true, "dial", resilience.KindNetwork
	}
	return false, "", 0
}

func isTLS(err error) bool {
	return isCertificate(err) || errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(tls.AlertError)) ||
		has(err, "tls:", "tls handshake", "remote error: tls", "x509:")
}

func isCertificate(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError))
}

// has looks for words in an error's text: some of net/http's errors have no type of their own.
func has(err error, words ...string) bool {
	s := strings.ToLower(err.Error())
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// evidenceOf describes a transport error without addresses' query strings or keys.
func evidenceOf(p Phase, err error) string {
	return clip(p.String()+": "+Redact(err.Error()), maxEvidence)
}
