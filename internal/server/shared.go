package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"omniroute/internal/config"
	"omniroute/store/redis"
)

// SharedStore returns the store on a server, without a connection to it.
func SharedStore(r *config.Redis) *redis.Store {
	o := redis.Options{Address: r.Address, DB: r.DB, User: r.User, Password: r.Password.Reveal(), Prefix: r.Prefix, Node: nodeName()}
	if r.TLS {
		host, _, _ := net.SplitHostPort(r.Address)
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
		if r.CA != nil {
			o.TLS.RootCAs = x509.NewCertPool()
			o.TLS.RootCAs.AppendCertsFromPEM(r.CA)
		}
	}
	return redis.New(o)
}

// nodeName is this process's name among the nodes: the machine's, and something of its own, since
// a machine may run several and a new process has nothing of the old one's leases.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	b := make([]byte, 3)
	_, _ = rand.Read(b)
	return host + "-" + hex.EncodeToString(b)
}

// CheckShared connects to a server, changes nothing there, and returns the server's name.
func CheckShared(ctx context.Context, r *config.Redis) (name string, err error) {
	s := SharedStore(r)
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	return s.String(), s.Check(ctx)
}

// checkTime bounds the first look at a server.
const checkTime = 3 * time.Second

// openRedis connects to a server. As with a file, what only a person can undo is an error; a server
// that is away is not, since the gateway goes on by itself until it is there.
func openRedis(ctx context.Context, r *config.Redis, log *slog.Logger) (keptStore, error) {
	s := SharedStore(r)
	limited, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	err := s.Check(limited)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case redis.Permanent(err):
		_ = s.Close()
		return nil, err
	default:
		log.Warn("the shared store cannot be reached; starting alone, and trying again", "error", err)
	}
	return s, nil
}
