package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// door is a listener that bounds how many connections clients hold at once, so that descriptors are left for
// upstreams and the store. Where all places are taken, whoever comes gets that of the connection that has been
// without a request for the longest; where every one has a request, who comes waits in the system's queue.
//
// It needs to be told of the states of its connections: see state.
type door struct {
	net.Listener
	room int
	log  *slog.Logger

	mu     sync.Mutex
	free   sync.Cond // a place may be free, or the listener is closed
	open   map[net.Conn]*guest
	quiet  guest // the ring of those without a request, the longest first behind it
	closed bool
	told   time.Time
}

// guest is a connection. Without a request it is in the ring of the quiet.
type guest struct {
	conn       net.Conn
	prev, next *guest
}

func (g *guest) leave() {
	if g.next != nil {
		g.prev.next, g.next.prev = g.next, g.prev
		g.prev, g.next = nil, nil
	}
}

func newDoor(l net.Listener, room int, log *slog.Logger) *door {
	d := &door{Listener: l, room: room, log: log, open: map[net.Conn]*guest{}}
	d.free.L = &d.mu
	d.quiet.prev, d.quiet.next = &d.quiet, &d.quiet
	return d
}

// Accept waits for a connection, then for a place.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.open) >= d.room && !d.closed {
		longest := d.quiet.next
		if longest == &d.quiet {
			d.tell("every connection that clients may hold has a request; further ones wait, so raise the limit of open files")
			d.free.Wait()
			continue
		}
		d.tell("clients hold all connections that they may; the one that has been idle for the longest is closed for each that comes")
		d.forget(longest)
		_ = longest.conn.Close()
	}
	if d.closed {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	g := &guest{conn: c}
	d.open[c] = g
	d.rest(g)
	return c, nil
}

// Close closes the listener, and not what came through it.
func (d *door) Close() error {
	d.mu.Lock()
	d.closed = true
	d.free.Broadcast()
	d.mu.Unlock()
	return d.Listener.Close()
}

// state is for http.Server.ConnState.
func (d *door) state(c net.Conn, s http.ConnState) {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.open[c]
	if g == nil {
		return // it was closed for another
	}
	switch s {
	case http.StateActive:
		g.leave()
	case http.StateIdle:
		g.leave()
		d.rest(g)
		d.free.Signal()
	case http.StateClosed, http.StateHijacked:
		d.forget(g)
		d.free.Signal()
	}
}

func (d *door) rest(g *guest) {
	last := d.quiet.prev
	g.prev, g.next = last, &d.quiet
	last.next, d.quiet.prev = g, g
}

func (d *door) forget(g *guest) {
	g.leave()
	delete(d.open, g.conn)
}

// tell logs that clients want more than there is, at most once a minute.
func (d *door) tell(what string) {
	if now := time.Now(); now.Sub(d.told) >= time.Minute {
		d.told = now
		d.log.Warn(what, "connections", len(d.open), "at_most", d.room)
	}
}

// roomFor returns how many connections clients may hold of a process that may open so many files: half of what is left
// beside the store and the like, since a request needs one to its upstream.
func roomFor(files uint64) int {
	const own, least, most = 64, 8, 1 << 20
	if files < own {
		return least
	}
	return int(min(max((files-own)/2, least), most))
}
