// Package redis shares gates between gateways through Redis (6.2 and up) or Valkey.
//
// The store is a resilience.Shared: transitions are joined on the server by scripts, every node is
// told of them, and probes are made under leases with fencing tokens. Everything is dated by the
// server's clock. docs/cluster.md says what is stored, for how long, and what it costs.
//
// A server needs no configuration. One primary is meant, reached at one address; Redis Cluster and
// the sentinels' protocol are not supported. Other programs may use the same database under other
// prefixes.
package redis

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"omniroute/resilience"
	"omniroute/store"
)

// Options say which server to use, and how.
type Options struct {
	// Address is HOST:PORT.
	Address string
	// DB is the number of the database. Defaults to 0.
	DB int
	// User and Password, where the server asks for them.
	User, Password string
	// TLS, where the server speaks it.
	TLS *tls.Config
	// Prefix begins every key and the channel. Gateways with the same one share their exclusions.
	// Defaults to "omniroute:".
	Prefix string
	// Node is this gateway's name among those that share the store; it must be unique.
	Node string

	// grace is for how long a store that has just begun gives out no leases, so that the owners of
	// those that it may have lost can say so first. Defaults to 2s, two beats.
	grace time.Duration
	// silence is how long a connection may be without the answer that it waits for. Defaults to 2s.
	silence time.Duration
	// resp2 makes the client speak the old protocol, as a test's server needs it.
	resp2 bool
	// audits is how many are kept. Defaults to resilience.MaxAudits.
	audits int
}

// Store is a resilience.Shared on a server. Its methods may be called from several goroutines at
// the same time.
type Store struct {
	o    Options
	keys []string
	life string // what a store that this node has to begin is called

	mu     sync.Mutex
	client rueidis.Client // nil until connected, and after a call that was not answered in time
	made   time.Time      // when it was connected
	closed bool
	ends   sync.WaitGroup // of clients that were given up
}

var _ resilience.Shared = (*Store)(nil)

const (
	dialTimeout = time.Second
	page        = 500
	// bufferSize of each direction of the one connection; longer messages pass through it in parts.
	bufferSize = 32 << 10
)

// New returns a store. It does no I/O: the first call connects, and so does the next one after a
// failure.
func New(o Options) *Store {
	if o.audits == 0 {
		o.audits = resilience.MaxAudits
	}
	if o.Prefix == "" {
		o.Prefix = "omniroute:"
	}
	if o.grace == 0 {
		o.grace = 2 * time.Second
	}
	if o.silence == 0 {
		o.silence = 2 * time.Second
	}
	s := &Store{o: o}
	for _, name := range []string{"meta", "gates", "log", "ends", "leases", "nodes"} {
		s.keys = append(s.keys, o.Prefix+name)
	}
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	s.life = hex.EncodeToString(b)
	return s
}

// Check connects, and looks whether this version can use what is stored there and whether it may do
// all that it needs to do: write, publish and listen. It leaves nothing behind.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.run(ctx, checkLua, 1); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var listens atomic.Bool
	err := s.Listen(ctx, func(resilience.News) {
		listens.Store(true)
		cancel()
	})
	if listens.Load() {
		return nil
	}
	return err
}

// String names the server without its password.
func (s *Store) String() string {
	scheme := "redis"
	if s.o.TLS != nil {
		scheme = "rediss"
	}
	return scheme + "://" + s.o.Address + "/" + strconv.Itoa(s.o.DB)
}

// Node returns this node's name.
func (s *Store) Node() string { return s.o.Node }

// Close ends the connection. Closing again is harmless; every other method then returns ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	client := s.client
	s.client, s.closed = nil, true
	s.mu.Unlock()
	if client != nil {
		client.Close()
	}
	s.ends.Wait()
	return nil
}

// connected returns the client, and connects where there is none.
func (s *Store) connected(ctx context.Context) (rueidis.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &store.Error{Store: s.String(), Reason: ErrClosed}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.client != nil {
		return s.client, nil
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.o.Address}, SelectDB: s.o.DB, Username: s.o.User, Password: s.o.Password, TLSConfig: s.o.TLS,
		ClientName: "omniroute", Dialer: net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}, ConnWriteTimeout: s.o.silence,
		ForceSingleClient: true, DisableRetry: true, DisableCache: true, PipelineMultiplex: -1,
		RingScaleEachConn: 6, ReadBufferEachConn: bufferSize, WriteBufferEachConn: bufferSize, BlockingPoolSize: 1,
		AlwaysRESP2: s.o.resp2, ClientSetInfo: rueidis.DisableClientSetInfo,
	})
	if err != nil {
		return nil, err
	}
	s.client, s.made = client, time.Now()
	return client, nil
}

// giveUp drops a client that did not answer in time: its connection may be dead without saying so.
// One that was still being made when the call began has not had that time: where the server is far
// away connecting takes most of it, and another connection would take as long.
func (s *Store) giveUp(client rueidis.Client, called time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.made.After(called) {
		s.drop(client)
	}
}

// leave drops a client whose server has become a replica: the address may lead to the new primary.
func (s *Store) leave(client rueidis.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(client)
}

// drop needs the lock.
func (s *Store) drop(client rueidis.Client) {
	if s.client != client {
		return
	}
	s.client = nil
	s.ends.Go(client.Close) // it waits for what is under way
}

var (
	//go:embed common.lua
	common string
	//go:embed beat.lua
	beatScript string
	//go:embed changes.lua
	changesScript string
	//go:embed merge.lua
	mergeScript string
	//go:embed lease.lua
	leaseScript string
	//go:embed apply.lua
	applyScript string
	//go:embed check.lua
	checkScript string

	beatLua    = rueidis.NewLuaScript(common + beatScript)
	changesLua = rueidis.NewLuaScript(common + changesScript)
	mergeLua   = rueidis.NewLuaScript(common + mergeScript)
	leaseLua   = rueidis.NewLuaScript(common + leaseScript)
	applyLua   = rueidis.NewLuaScript(common + applyScript)
	checkLua   = rueidis.NewLuaScript(common + checkScript)
)

// channel is the database's own: the server's channels are the same in all of them.
func (s *Store) channel() string { return s.o.Prefix + "news:" + strconv.Itoa(s.o.DB) }

// run runs a script. Its answer is a list of want things.
func (s *Store) run(ctx context.Context, script *rueidis.Lua, want int, args ...string) ([]rueidis.RedisMessage, error) {
	called := time.Now()
	client, err := s.connected(ctx)
	if err != nil {
		return nil, explain(s.String(), err)
	}
	answer, err := script.Exec(ctx, client, s.keys, append([]string{s.channel(), s.life}, args...)).ToArray()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.giveUp(client, called)
	case ofReplica(err):
		s.leave(client)
	}
	if err == nil && len(answer) != want {
		err = fmt.Errorf("the script was answered with %d parts instead of %d", len(answer), want)
	}
	return answer, explain(s.String(), err)
}

// Listen hears all news until ctx ends or the connection breaks.
func (s *Store) Listen(ctx context.Context, hear func(resilience.News)) error {
	client, err := s.connected(ctx)
	if err != nil {
		return explain(s.String(), err)
	}
	begun := make(chan struct{}, 1)
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) {
		select {
		case begun <- struct{}{}:
		default:
		}
	})
	var hearing sync.Mutex
	stop := make(chan struct{})
	var waits sync.WaitGroup
	waits.Go(func() {
		for {
			select {
			case <-begun:
				hearing.Lock()
				hear(resilience.News{})
				hearing.Unlock()
			case <-stop:
				return
			}
		}
	})
	err = client.Receive(hooked, client.B().Subscribe().Channel(s.channel()).Build(), func(m rueidis.PubSubMessage) {
		n, err := parseNews(m.Message)
		if err != nil {
			n = resilience.News{} // the engine looks what it was
		}
		hearing.Lock()
		hear(n)
		hearing.Unlock()
	})
	close(stop)
	waits.Wait()
	if err == nil {
		err = errors.New("the subscription has ended")
	}
	return explain(s.String(), err)
}
