package config

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Store says where the state is kept.
type Store struct {
	// Kind is StoreSQLite, StoreRedis or StoreMemory.
	Kind string
	// Path is the database file, absolute or relative to the working directory. Of StoreSQLite only.
	Path string
	// Redis is the server that several gateways share. Of StoreRedis only.
	Redis *Redis
}

// The kinds of store.
const (
	StoreSQLite = "sqlite"
	StoreRedis  = "redis"
	StoreMemory = "memory"
)

// Redis is a Redis or Valkey server.
type Redis struct {
	Address  string // HOST:PORT
	DB       int
	User     string
	Password Secret
	TLS      bool
	CA       []byte // PEM of certificates that are trusted instead of the machine's; nil for those
	Prefix   string // of every key; empty for the store's own default
}

// Equal reports whether both name the same place in the same way.
func (s Store) Equal(o Store) bool {
	if s.Redis == nil || o.Redis == nil {
		return s == o
	}
	a, b := *s.Redis, *o.Redis
	return s.Kind == o.Kind && a.Address == b.Address && a.DB == b.DB && a.User == b.User && a.Password.Equal(b.Password) &&
		a.TLS == b.TLS && a.Prefix == b.Prefix && bytes.Equal(a.CA, b.CA)
}

func (b *builder) store(n *node) {
	if !n.ok() {
		return
	}
	scheme, rest, ok := strings.Cut(n.text, ":")
	switch {
	case ok && scheme == "sqlite" && rest != "" && rest != ":memory:":
		path := fromDir(b.dir, rest)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			b.errorf(n, "this is a folder, and the store is a file; write %s", "sqlite:"+strings.TrimRight(rest, "/")+"/omniroute.db")
			return
		}
		b.cfg.Store = Store{Kind: StoreSQLite, Path: path}
	case ok && scheme == "sqlite" && rest == ":memory:":
		b.errorf(n, "a store in memory is written memory:")
	case n.text == "memory:" || n.text == "memory":
		b.cfg.Store = Store{Kind: StoreMemory}
	case scheme == "redis" || scheme == "rediss":
		r, err := b.redis(n.text)
		if err != nil {
			b.errorf(n, "%v", err)
			return
		}
		b.cfg.Store = Store{Kind: StoreRedis, Redis: r}
	case scheme == "valkey" || scheme == "valkeys" || strings.HasPrefix(scheme, "redis"):
		b.errorf(n, "a server is written redis://HOST:PORT/DB, or rediss:// with TLS; Redis Cluster and sentinels are not supported")
	default:
		b.errorf(n, "this is no store; write sqlite:omniroute.db, redis://HOST:PORT/DB or memory:")
	}
}

// maxPrefix bounds what every key begins with.
const maxPrefix = 100

// redis reads redis://[USER:PASSWORD@]HOST[:PORT][/DB][?prefix=P&ca=FILE]. No error repeats a part
// that may hold the password.
func (b *builder) redis(text string) (*Redis, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("this is no URL; write redis://HOST:PORT/DB, and special characters of a password as %%XX")
	}
	r := &Redis{TLS: u.Scheme == "rediss"}
	if u.User != nil {
		r.User = u.User.Username()
		secret, has := u.User.Password()
		if !has || secret == "" {
			return nil, fmt.Errorf("the password is missing; write redis://USER:PASSWORD@HOST, or redis://:PASSWORD@HOST for the default user")
		}
		b.src.hide(secret)
		r.Password = NewSecret(secret)
	}
	host, port := u.Hostname(), u.Port()
	if u.Opaque != "" || host == "" || strings.ContainsAny(u.Host, ", ") {
		return nil, fmt.Errorf("name one server: redis://HOST:PORT/DB")
	}
	if port == "" {
		port = "6379"
	}
	if v, err := strconv.ParseUint(port, 10, 16); err != nil || v == 0 {
		return nil, fmt.Errorf("%q is no port; write a number from 1 to 65535, such as 6379", port)
	}
	r.Address = net.JoinHostPort(host, port)
	if db := strings.TrimPrefix(u.Path, "/"); db != "" {
		v, err := strconv.ParseUint(db, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of a database; write a number such as /0 behind the server", db)
		}
		r.DB = int(v)
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("nothing can follow a #; write special characters of a password as %%XX")
	}
	return r, b.redisOptions(u, r)
}

func (b *builder) redisOptions(u *url.URL, r *Redis) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("what follows the ? makes no sense; write ?prefix=NAME: or ?ca=FILE")
	}
	for key, values := range query {
		value := values[len(values)-1]
		switch {
		case len(values) > 1:
			return fmt.Errorf("%q stands there twice", key)
		case key == "prefix" && (value == "" || len(value) > maxPrefix):
			return fmt.Errorf("a prefix has 1 to %d characters", maxPrefix)
		case key == "prefix":
			r.Prefix = value
		case key == "ca" && !r.TLS:
			return fmt.Errorf("ca is for servers with TLS: rediss://")
		case key == "ca":
			if r.CA, err = b.read(fromDir(b.dir, value)); err != nil {
				return fmt.Errorf("ca: %s", fileError(err))
			}
			if !x509.NewCertPool().AppendCertsFromPEM(r.CA) {
				return fmt.Errorf("ca: the file holds no certificate in PEM form; it must have a -----BEGIN CERTIFICATE----- block")
			}
		default:
			return fmt.Errorf("there is no option %q; there are prefix and ca", key)
		}
	}
	return nil
}
