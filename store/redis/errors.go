package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/redis/rueidis"

	"omniroute/store"
)

// The reasons for which a store fails, for errors.Is.
var (
	// ErrNewer: a later version wrote the store. It was left as it is.
	ErrNewer = errors.New("a newer version wrote it")
	// ErrForeign: another program has keys under this prefix. They were left as they are.
	ErrForeign = errors.New("another program uses these keys")
	// ErrDenied: the user or the password is not right, or lacks a permission.
	ErrDenied = errors.New("access is denied")
	// ErrDatabase: there is no database of that number.
	ErrDatabase = errors.New("there is no such database")
	// ErrTLS: the server's certificate is not trusted.
	ErrTLS = errors.New("its certificate is not trusted")
	// ErrKind: what answers is a cluster, a replica or a sentinel.
	ErrKind = errors.New("this is no single primary server")
	// ErrFull: the server has no memory left, or cannot save to its disk.
	ErrFull = errors.New("the server takes no more data")
	// ErrAway: the server does not answer.
	ErrAway = errors.New("the server does not answer")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("it is closed")
)

// Permanent reports whether an error is a mistake that only a person can undo, so that a gateway
// should not start with it.
func Permanent(err error) bool {
	for _, reason := range []error{ErrNewer, ErrForeign, ErrDenied, ErrDatabase, ErrTLS, ErrKind} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// answers are how a server's refusals begin, what they mean and what helps.
var answers = []struct {
	begins string
	reason error
	advice string
}{
	{"OMNINEWER", ErrNewer, "Run the newer version on every node, or use another prefix or database"},
	{"OMNIFOREIGN", ErrForeign, "Use another prefix or database"},
	{"WRONGTYPE", ErrForeign, "Use another prefix or database"},
	{"WRONGPASS", ErrDenied, "Correct the user and the password in the store's address"},
	{"NOAUTH", ErrDenied, "Put the user and the password into the store's address: redis://USER:PASSWORD@HOST"},
	{"AUTH", ErrDenied, "The server has no password set: take it out of the store's address, or set it there"},
	{"NOPERM", ErrDenied, "Let the user run scripts, and use the keys and the channel that begin with the prefix"},
	{"The user executing the script", ErrDenied, "Let the user write, publish and listen: +@all -@admin -@dangerous, for the keys and the channel that begin with the prefix"},
	{"ACL failure in script", ErrDenied, "Let the user write, publish and listen: +@all -@admin -@dangerous, for the keys and the channel that begin with the prefix"},
	{"DB index", ErrDatabase, "Correct the number at the end of the store's address"},
	{"invalid DB index", ErrDatabase, "Correct the number at the end of the store's address"},
	{"SELECT is not allowed in cluster mode", ErrKind, "Redis Cluster is not supported: name a server outside of it"},
	{"CROSSSLOT", ErrKind, "Redis Cluster is not supported: name a server outside of it"},
	{"MOVED", ErrKind, "Redis Cluster is not supported: name a server outside of it"},
	{"CLUSTERDOWN", ErrKind, "Redis Cluster is not supported: name a server outside of it"},
	{"unknown command", ErrKind, "Sentinels keep no data: name the primary server"},
	{"DENIED", ErrDenied, "Set a password on the server and put it into the store's address"},
	{"OOM", ErrFull, "Give it more memory, or remove what is not needed; the policy noeviction is right"},
	{"MISCONF", ErrFull, "It cannot save to its disk, and so takes no changes: see its log"},
	{"READONLY", nil, "It is a replica; the primary may be just changing"},
	{"MASTERDOWN", nil, "It is a replica that has lost its primary"},
	{"NOREPLICAS", nil, "It takes changes only while its replicas are in touch: see its min-replicas-to-write"},
	{"LOADING", nil, "It is reading its data; this passes by itself"},
	{"BUSY", nil, "A script of another program is running for too long"},
}

// ofReplica reports whether a replica has answered.
func ofReplica(err error) bool {
	answer, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(answer.Error(), "READONLY") || strings.HasPrefix(answer.Error(), "MASTERDOWN"))
}

// explain turns a cause into an Error with reason and advice.
func explain(server string, err error) error {
	var known *store.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("store %s: %w", server, err)
	}
	e := &store.Error{Store: server, Err: err}
	// Scripts report what their commands were answered, some servers with a word before it.
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "ERR "), "Error running script: ")
	for _, a := range answers {
		if strings.HasPrefix(text, a.begins) {
			e.Reason, e.Advice = a.reason, a.advice
			return e
		}
	}
	if _, answered := rueidis.IsRedisErr(err); answered {
		return e
	}
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		e.Reason, e.Advice = ErrTLS, "Name the server in the store's address as its certificate does, or give it a certificate for this name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		e.Reason, e.Advice = ErrTLS, "Give the server a certificate that is valid now, and see whether this machine's clock is right"
	case errors.As(err, &cert), errors.As(err, &unknown):
		e.Reason, e.Advice = ErrTLS, "Name the authority's certificate: rediss://HOST/DB?ca=FILE"
	case strings.Contains(text, "tls: certificate required"):
		e.Reason, e.Advice = ErrDenied, "The server wants a certificate of its clients, which is not supported: set its tls-auth-clients to no or optional"
	case strings.HasPrefix(server, "rediss:"):
		e.Reason, e.Advice = ErrAway, "Routing goes on. If it never answers it may not speak TLS at this port: redis:// instead of rediss://, or another port"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		e.Reason, e.Advice = ErrAway, "Routing goes on. If it never answers it may speak TLS at this port: rediss:// instead of redis://, or another port"
	default:
		e.Reason, e.Advice = ErrAway, "Routing goes on; the nodes share again as soon as it is back"
	}
	return e
}
