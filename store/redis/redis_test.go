package redis

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"omniroute/internal/redistest"
	"omniroute/resilience"
	"omniroute/store/storetest"
)

// prefixes keeps the media of one server apart.
var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("test %d:", prefixes.Add(1)) }

func TestStoreOnMiniredis(t *testing.T) {
	t.Parallel()
	// Miniredis wakes a client's goroutine for every message; one server for all would make them wait for each other.
	storetest.Run(t, func(t testing.TB) storetest.Medium {
		m := miniredis.RunT(t)
		return medium(Options{Address: m.Addr(), resp2: true})
	})
}

func TestStoreOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	storetest.Run(t, func(testing.TB) storetest.Medium { return medium(Options{Address: server.Addr, DB: 3}) })
}

func TestSharedOnMiniredis(t *testing.T) {
	t.Parallel()
	storetest.RunShared(t, func(t testing.TB) storetest.Fleet {
		return fleet(t, Options{Address: miniredis.RunT(t).Addr(), resp2: true})
	})
}

func TestSharedOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	storetest.RunShared(t, func(t testing.TB) storetest.Fleet { return fleet(t, Options{Address: server.Addr}) })
}

// fleet opens nodes on a store that gives out leases from the start.
func fleet(t testing.TB, o Options) storetest.Fleet {
	o.Prefix, o.grace, o.silence = newPrefix(), time.Nanosecond, time.Minute
	return func(node string) resilience.Shared {
		o.Node = node
		s := New(o)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

func medium(o Options) storetest.Medium {
	o.Prefix, o.Node, o.silence = newPrefix(), "one", time.Minute // a script of thousands of records takes long under the race detector
	return storetest.Medium{Open: func(storetest.TB) resilience.Store { return New(o) }}
}

// Names may hold anything and stay apart; nothing of them is lost.
func FuzzGateText(f *testing.F) {
	f.Add(byte(2), "openai", "main", "gpt-5.2")
	f.Add(byte(3), "a/b", "\xff\n", "%2F")
	f.Fuzz(func(t *testing.T, layer byte, p, c, m string) {
		id := resilience.RecordID{Layer: resilience.Layer(layer), Key: resilience.Key{Provider: p, Connection: c, Model: m}}
		s := gateText(id)
		if strings.ContainsAny(s, " \n") {
			t.Fatalf("%q is not one word", s)
		}
		if got, err := parseGate(s); err != nil || got != id {
			t.Fatalf("%+v became %q and then %+v (%v)", id, s, got, err)
		}
	})
}

// What comes from the network never panics, and a view that is read is written as it was.
func FuzzNews(f *testing.F) {
	f.Add("2:ab1:11:21:24:2/pp38:C 0000000000000001 00000000000000000091:01:01:0")
	f.Add("C 0000000000000001 0000000000000000009\nF 0000000000000002 0000000000000000007 000001 03 {}")
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = parseNews(s)
		v, err := parseView(s)
		if err != nil || v.Cleared > maxStamp {
			return
		}
		for _, f := range v.Facts {
			if f.Stamp > maxStamp {
				return
			}
		}
		if again, err := parseView(viewText(v)); err != nil || !again.Has(v) {
			t.Fatalf("%q became %+v and then %+v (%v)", s, v, again, err)
		}
	})
}
