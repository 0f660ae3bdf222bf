package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"omniroute/internal/redistest"
	"omniroute/resilience"
)

// Every mistake in an address, and every server that cannot be used, says what to do and no secret.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	const secret = "very-secret"
	plain := redistest.Start(t)
	locked := redistest.Start(t, "--requirepass", "sesame")
	cluster := redistest.Start(t, "--cluster-enabled", "yes")
	plain.Must("SET", "foreign:meta", "mine")
	plain.Must("HSET", "hash:meta", "color", "blue")
	plain.Must("HSET", "newer:meta", "format", "2", "life", "x")
	plain.Must("SET", "part:gates", "mine")
	replica := redistest.Start(t, "--replicaof", strings.Replace(plain.Addr, ":", " ", 1))
	for user, may := range map[string][]string{
		"mute":    {"+@all", "-@admin", "-@dangerous", "resetchannels"},
		"reader":  {"+@read", "+@scripting", "+@pubsub", "+@connection", "&*"},
		"deaf":    {"+@all", "-subscribe", "&*"},
		"nothing": {"+@connection"},
		"fits":    {"+@all", "-@admin", "-@dangerous", "resetchannels", "&omniroute:*"},
	} {
		plain.Must(append([]string{"ACL", "SETUSER", user, "on", ">" + secret, "~omniroute:*"}, may...)...)
	}
	for name, c := range map[string]struct {
		o    Options
		want error
		says string
	}{
		"wrong password":       {Options{Address: locked.Addr, Password: secret}, ErrDenied, "Correct the user and the password"},
		"no password":          {Options{Address: locked.Addr}, ErrDenied, "redis://USER:PASSWORD@HOST"},
		"unknown user":         {Options{Address: plain.Addr, User: "who", Password: secret}, ErrDenied, "Correct the user and the password"},
		"wrong database":       {Options{Address: plain.Addr, DB: 99}, ErrDatabase, "Correct the number"},
		"another's text":       {Options{Address: plain.Addr, Prefix: "foreign:"}, ErrForeign, "another prefix"},
		"another's hash":       {Options{Address: plain.Addr, Prefix: "hash:"}, ErrForeign, "another prefix"},
		"a newer version's":    {Options{Address: plain.Addr, Prefix: "newer:"}, ErrNewer, "newer version on every node"},
		"a cluster":            {Options{Address: cluster.Addr}, ErrKind, "Redis Cluster is not supported"},
		"no TLS there":         {Options{Address: plain.Addr, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Password: secret}, ErrAway, "redis:// instead of rediss://"},
		"nobody there":         {Options{Address: "127.0.0.1:1", Password: secret}, ErrAway, "as soon as it is back"},
		"a name that is not":   {Options{Address: "no.such.host.invalid:6379", Password: secret}, ErrAway, "as soon as it is back"},
		"may not publish":      {Options{Address: plain.Addr, User: "mute", Password: secret}, ErrDenied, "publish"},
		"may not write":        {Options{Address: plain.Addr, User: "reader", Password: secret}, ErrDenied, "write"},
		"may not listen":       {Options{Address: plain.Addr, User: "deaf", Password: secret}, ErrDenied, "the channel"},
		"may do nothing":       {Options{Address: plain.Addr, User: "nothing", Password: secret}, ErrDenied, "run scripts"},
		"a user that fits":     {Options{Address: plain.Addr, User: "fits", Password: secret}, nil, ""},
		"another's later key":  {Options{Address: plain.Addr, Prefix: "part:"}, ErrForeign, "another prefix"},
		"TLS there":            {Options{Address: encrypted(t)}, ErrAway, "rediss:// instead of redis://"},
		"a password that fits": {Options{Address: locked.Addr, Password: "sesame"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := open(t, c.o).Check(t.Context())
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if c.want == nil {
				return
			}
			if got := Permanent(err); got != !errors.Is(err, ErrAway) {
				t.Errorf("permanent: %v", got)
			}
			if text := err.Error(); !strings.Contains(text, c.says) || strings.Contains(text, secret) || !strings.Contains(text, c.o.Address) {
				t.Errorf("%s", text)
			}
		})
	}
	t.Run("a replica", func(t *testing.T) {
		t.Parallel()
		err := open(t, Options{Address: replica.Addr}).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), "It is a replica") || Permanent(err) {
			t.Errorf("%v", err)
		}
	})
	t.Run("what is another's stays as it is", func(t *testing.T) {
		t.Parallel()
		s := open(t, Options{Address: plain.Addr, Prefix: "newer:"})
		if _, err := s.Beat(t.Context(), resilience.Beat{}); !errors.Is(err, ErrNewer) {
			t.Error(err)
		}
		if got := plain.Must("KEYS", "newer:*"); got != "newer:meta" {
			t.Errorf("%q", got)
		}
	})
}

// What is wrong with the encryption is told apart: another advice helps for each.
func TestErrorsOfTLS(t *testing.T) {
	t.Parallel()
	later := func() time.Time { return time.Now().AddDate(200, 0, 0) }
	for name, c := range map[string]struct {
		name  string           // that the client expects
		now   func() time.Time // for the client
		roots bool             // whether it knows the authority
		asks  tls.ClientAuthType
		want  error
		says  string
	}{
		"an authority that is not known": {want: ErrTLS, says: "?ca=FILE"},
		"another name":                   {name: "other.invalid", roots: true, want: ErrTLS, says: "as its certificate does"},
		"a certificate of the past":      {now: later, roots: true, want: ErrTLS, says: "valid now"},
		"clients need certificates":      {asks: tls.RequireAnyClientCert, roots: true, want: ErrDenied, says: "tls-auth-clients"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(nil)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{ClientAuth: c.asks, MinVersion: tls.VersionTLS12}
			server.StartTLS()
			t.Cleanup(server.Close)
			client := &tls.Config{ServerName: c.name, Time: c.now, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
			if c.roots {
				client.RootCAs.AddCert(server.Certificate())
			}
			err := open(t, Options{Address: server.Listener.Addr().String(), TLS: client}).Check(t.Context())
			if !errors.Is(err, c.want) || !Permanent(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v and %q", err, c.want, c.says)
			}
		})
	}
}

// encrypted returns the address of a server that ends connections which do not begin with TLS.
func encrypted(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// Looking leaves nothing behind, not even where nobody shares yet, and disturbs nobody who does.
func TestCheckLeavesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if err := open(t, Options{Address: server.Addr, Node: "two"}).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys := server.Must("KEYS", "*"); keys != "" {
		t.Errorf("%q", keys)
	}
	s := open(t, Options{Address: server.Addr})
	before, err := s.Beat(t.Context(), resilience.Beat{})
	if err != nil {
		t.Fatal(err)
	}
	news := make(chan resilience.News, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Listen(ctx, func(n resilience.News) { news <- n })
	}()
	defer func() { cancel(); <-done }()
	<-news
	if err := open(t, Options{Address: server.Addr, Node: "two"}).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := <-news; n.Life != before.Life || n.From != before.Revision || n.To != before.Revision || len(n.Gates)+len(n.Taken)+len(n.Freed)+len(n.Wanted) != 0 {
		t.Errorf("%+v", n)
	}
	after, err := s.Beat(t.Context(), resilience.Beat{})
	if err != nil || after.Life != before.Life || after.Revision != before.Revision || after.Count != 1 {
		t.Errorf("%+v %v", after, err)
	}
}
