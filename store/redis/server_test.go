package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniroute/internal/redistest"
	"omniroute/resilience"
)

func open(t *testing.T, o Options) *Store {
	t.Helper()
	o.Node, o.silence = cmp.Or(o.Node, "one"), cmp.Or(o.silence, time.Minute) // however slow the machine
	s := New(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A server that evicts keys takes a part of what is known, which no revision tells of: what is left
// begins anew, each time under another name, and the nodes bring everything back.
func TestEvictedPartsBeginAnew(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, Options{Address: server.Addr})
	put := resilience.Contribution{Gates: []resilience.Contributed{{Known: resilience.Known{Gate: gateA, View: someView(t, s)}}}}
	lives := map[string]string{}
	for _, key := range []string{"gates", "log", "ends", "meta"} {
		m, err := s.Merge(t.Context(), put)
		if err != nil {
			t.Fatal(err)
		}
		server.Must("DEL", "omniroute:"+key)
		p, err := s.Beat(t.Context(), resilience.Beat{})
		if err != nil || p.Life == m.Life || p.Revision != 0 {
			t.Errorf("without %s: %+v %v", key, p, err)
		}
		if had := lives[p.Life]; had != "" {
			t.Errorf("without %s the store is called what it was called without %s", key, had)
		}
		lives[p.Life] = key
	}
}

// patient is a context whose time is over when the test says so.
type patient struct {
	context.Context
	over chan struct{}
}

func (p patient) Done() <-chan struct{} { return p.over }

func (p patient) Err() error {
	select {
	case <-p.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Where connecting takes longer than a call may, the call fails but the connection stays for the next.
func TestSlowConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, Options{Address: server.Addr})
	server.Pause()
	ctx := patient{t.Context(), make(chan struct{})}
	failed := make(chan error)
	go func() {
		_, err := s.Beat(ctx, resilience.Beat{})
		failed <- err
	}()
	for held := 0; held < 50; held++ { // until it connects, which holds the lock
		if s.mu.TryLock() {
			s.mu.Unlock()
			held = 0
		}
		time.Sleep(time.Millisecond)
	}
	close(ctx.over)
	server.Resume()
	if err := <-failed; !errors.Is(err, ErrAway) {
		t.Fatalf("%v", err)
	}
	s.mu.Lock()
	kept := s.client != nil
	s.mu.Unlock()
	if !kept {
		t.Error("the connection was dropped: where the server is far away no call would ever succeed")
	}
}

// A full server takes no changes, but still tells what it knows.
func TestFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, Options{Address: server.Addr})
	put := resilience.Contribution{Gates: []resilience.Contributed{{Known: resilience.Known{Gate: gateA, View: someView(t, s)}}}}
	if _, err := s.Merge(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	server.Must("CONFIG", "SET", "maxmemory", "1")
	put.Gates[0].View.Facts[0].Stamp++
	if _, err := s.Merge(t.Context(), put); !errors.Is(err, ErrFull) || Permanent(err) {
		t.Errorf("%v", err)
	}
	if c, err := s.Changes(t.Context(), 0); err != nil || len(c.Gates) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// someView is a view of a rate limit that lasts for another hour.
func someView(t *testing.T, s *Store) resilience.View {
	t.Helper()
	p, err := s.Beat(t.Context(), resilience.Beat{})
	if err != nil {
		t.Fatal(err)
	}
	r := resilience.Record{Layer: gateA.Layer, Key: gateA.Key, State: "cooling", Kind: resilience.KindRateLimit, SinceMs: p.Now.UnixMilli(),
		UntilMs: p.Now.Add(time.Hour).UnixMilli(), Level: 1, Detail: `{"rule":"openai.rate_limit"}`}
	return resilience.View{KeepMs: r.UntilMs, Facts: []resilience.Fact{resilience.NewFact(r, resilience.Stamp(p.Now.UnixMicro()))}}
}

// A server that hangs costs a call its time and no more; when it goes on, so does the store.
func TestHangingServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, Options{Address: server.Addr})
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Beat(ctx, resilience.Beat{}); !errors.Is(err, ErrAway) {
		t.Errorf("%v", err)
	}
	server.Resume()
	if _, err := s.Beat(t.Context(), resilience.Beat{}); err != nil {
		t.Error(err)
	}
}

// Two databases of one server, and two prefixes of one database, are strangers.
func TestStoresDoNotMix(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	here := open(t, Options{Address: server.Addr})
	news := make(chan resilience.News, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = here.Listen(ctx, func(n resilience.News) { news <- n })
	}()
	defer func() { cancel(); <-done }()
	<-news
	for _, o := range []Options{{DB: 1}, {Prefix: "other:"}, {}} {
		o.Address = server.Addr
		s := open(t, o)
		if _, err := s.Merge(t.Context(), resilience.Contribution{Gates: []resilience.Contributed{{Known: resilience.Known{Gate: gateA, View: someView(t, s)}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := <-news; len(n.Gates) != 1 {
		t.Errorf("%+v", n)
	}
	if len(news) != 0 {
		t.Errorf("%d more", len(news))
	}
}

// commands counts what a server has done, and the bytes that it has read and written.
func commands(server *redistest.Server) (calls map[string]int, bytes int) {
	calls = map[string]int{}
	for line := range strings.Lines(server.Must("INFO", "commandstats")) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		count, _, _ := strings.Cut(strings.TrimPrefix(rest, "calls="), ",")
		if name, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			calls[name], _ = strconv.Atoi(count)
		}
	}
	for line := range strings.Lines(server.Must("INFO", "stats")) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "total_net_input_bytes" || name == "total_net_output_bytes" {
			b, _ := strconv.Atoi(n)
			bytes += b
		}
	}
	return calls, bytes
}

// What docs/cluster.md says of the footprint: calls and bytes for a transition, a beat and a
// lease, and keys that end with what they describe.
func TestFootprint(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, Options{Address: server.Addr, grace: time.Nanosecond})
	view := someView(t, s)
	put := resilience.Contribution{Gates: []resilience.Contributed{{Known: resilience.Known{Gate: gateA, View: view}}}}
	var token int64
	steps := []struct {
		name  string
		calls int // of scripts
		bytes int // at most
		do    func() error
	}{
		{"a beat", 1, 400, func() error { _, err := s.Beat(t.Context(), resilience.Beat{}); return err }},
		{"a transition", 1, 1000, func() error { _, err := s.Merge(t.Context(), put); return err }},
		{"the same again", 1, 700, func() error { _, err := s.Merge(t.Context(), put); return err }},
		{"a lease", 1, 400, func() error {
			g, err := s.Lease(t.Context(), []resilience.RecordID{gateA}, time.Minute)
			token = g.Token
			return err
		}},
		{"what a probe found", 1, 1000, func() error {
			put.Gates[0].View.Facts[0].Stamp++
			put.Gates[0].Token, put.Free = token, []resilience.Held{{Gate: gateA, Token: token}}
			_, err := s.Merge(t.Context(), put)
			return err
		}},
		{"changes", 1, 800, func() error { _, err := s.Changes(t.Context(), 0); return err }},
	}
	for _, step := range steps { // scripts that the server does not know yet cost more
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
	}
	put.Gates[0].Token, put.Free = 0, nil
	for _, step := range steps {
		put.Gates[0].View.Facts[0].Stamp += 2
		calls, bytes := commands(server)
		none, noBytes := commands(server) // what counting costs
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		after, total := commands(server)
		cost := total - noBytes - (noBytes - bytes)
		inner := 0
		for name, n := range after {
			if name != "info" && name != "evalsha" {
				inner += n - none[name]
			}
		}
		if got := after["evalsha"] - none["evalsha"]; got != step.calls || after["eval"] != calls["eval"] {
			t.Errorf("%s: %d calls, %d with the script's text", step.name, got, after["eval"]-calls["eval"])
		}
		if cost > step.bytes || inner > 18 {
			t.Errorf("%s: %d bytes and %d commands inside, at most %d and 18 are promised", step.name, cost, inner, step.bytes)
		}
		t.Logf("%-20s %d call, %d commands inside, %d bytes both ways", step.name, step.calls, inner, cost)
	}
	for key := range strings.Lines(server.Must("KEYS", "*")) {
		key = strings.TrimSpace(key)
		if ttl, err := strconv.Atoi(server.Must("PTTL", key)); err != nil || ttl <= 0 {
			t.Errorf("%s stays for ever: %d %v", key, ttl, err)
		}
	}
}

// What has ended leaves the server, and what is left of a store that lost its head is no harm.
func TestNothingStaysForEver(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, Options{Address: server.Addr})
	var c resilience.Contribution
	for i := range 300 {
		g := resilience.RecordID{Layer: resilience.LayerModel, Key: resilience.Key{Provider: "p", Connection: "c", Model: fmt.Sprint(i)}}
		v := someView(t, s)
		v.KeepMs = 1 // long over
		c.Gates = append(c.Gates, resilience.Contributed{Known: resilience.Known{Gate: g, View: v}})
	}
	first, err := s.Merge(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := s.Beat(t.Context(), resilience.Beat{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"gates", "log", "ends"} {
		if n := server.Must("EXISTS", "omniroute:"+key); n != "0" {
			t.Errorf("%s is still there", key)
		}
	}
	server.Must("DEL", "omniroute:meta") // evicted, say
	if c, err := s.Changes(t.Context(), 0); err != nil || c.Life != "" {
		t.Errorf("%+v %v", c, err)
	}
	two := open(t, Options{Address: server.Addr, Node: "two"})
	if p, err := two.Beat(t.Context(), resilience.Beat{}); err != nil || p.Life == first.Life || p.Revision != 0 {
		t.Errorf("%+v %v", p, err)
	}
}

// A failover behind one address: the old primary goes on as a replica and ends no connection. The
// store asks for the address again, and gets to the new one.
func TestFailoverBehindOneAddress(t *testing.T) {
	t.Parallel()
	old, next := redistest.Start(t), redistest.Start(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var to atomic.Pointer[string]
	to.Store(&old.Addr)
	var ways sync.WaitGroup
	ways.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			ways.Go(func() { join(from, *to.Load()) })
		}
	})
	s := New(Options{Address: l.Addr().String(), Node: "one"})
	defer ways.Wait()
	defer func() { _, _ = s.Close(), l.Close() }()
	if _, err := s.Beat(t.Context(), resilience.Beat{}); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(next.Addr)
	old.Must("REPLICAOF", host, port)
	to.Store(&next.Addr)
	if _, err := s.Beat(t.Context(), resilience.Beat{}); err == nil || !strings.Contains(err.Error(), "It is a replica") {
		t.Fatalf("%v", err)
	}
	if _, err := s.Beat(t.Context(), resilience.Beat{}); err != nil {
		t.Errorf("it stays with the replica: %v", err)
	}
}

// join carries bytes between a connection and an address until either end closes.
func join(from net.Conn, addr string) {
	to, err := net.Dial("tcp", addr)
	if err != nil {
		_ = from.Close()
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = from.Close(), to.Close()
		})
	}
	both.Wait()
}
