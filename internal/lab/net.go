package lab

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Dialing says what happens to those who dial a [PipeListener].
type Dialing uint8

// The ways to answer a dial.
const (
	DialAccepted    Dialing = iota // a connection
	DialRefused                    // ECONNREFUSED at once
	DialSilent                     // nothing until the dialer's context ends, as with dropped packets
	DialUnknownHost                // a *net.DNSError at once
)

// PipeListener is a net.Listener without a network. Its DialContext makes the connections that
// Accept returns. Create it with [Pipe] or [Net.Listen], inside the synctest bubble that uses it.
type PipeListener struct {
	host  string
	addr  net.Addr
	queue chan net.Conn
	done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	dialing Dialing
	dialed  int
}

// Pipe returns a listener in memory. Its DialContext ignores the address, so every URL leads to it.
func Pipe() *PipeListener { return newPipeListener("pipe.example", 1) }

func newPipeListener(host string, last byte) *PipeListener {
	return &PipeListener{
		host:  host,
		addr:  &net.TCPAddr{IP: net.IPv4(127, 0, 0, last), Port: 80},
		queue: make(chan net.Conn, 128),
		done:  make(chan struct{}),
	}
}

// Accept implements net.Listener.
func (l *PipeListener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept; from then on dials are refused. Connections that nobody accepted are reset.
func (l *PipeListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				c.(*PipeConn).SetLinger(0)
				c.Close()
			default:
				return
			}
		}
	})
	return nil
}

// Addr implements net.Listener. It is a loopback address.
func (l *PipeListener) Addr() net.Addr { return l.addr }

// URL returns "http://HOST", what a client of this listener asks for.
func (l *PipeListener) URL() string { return "http://" + l.host }

// SetDialing changes what happens to those who dial from now on. Connections that exist stay.
func (l *PipeListener) SetDialing(d Dialing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialing = d
}

// DialContext returns the client's end of a new connection. It has the signature that
// http.Transport wants; the address does not matter.
func (l *PipeListener) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	dialing := l.dialing
	l.dialed++
	port := 1024 + l.dialed%60000
	l.mu.Unlock()

	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: l.addr, Err: err}
	}
	switch dialing {
	case DialRefused:
		return fail(syscall.ECONNREFUSED)
	case DialSilent:
		<-ctx.Done()
		return fail(ctx.Err())
	case DialUnknownHost:
		return fail(unknownHost(l.host))
	}
	client, server := newPipe(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, l.addr)
	select {
	case <-l.done:
		return fail(syscall.ECONNREFUSED)
	default:
	}
	select {
	case l.queue <- server:
		// A Close that came between has emptied the queue before; nobody would accept this one.
		select {
		case <-l.done:
			server.SetLinger(0)
			server.Close()
		default:
		}
		return client, nil
	case <-l.done:
		return fail(syscall.ECONNREFUSED)
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}

// Dialed returns how often the listener was dialed, failures included.
func (l *PipeListener) Dialed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dialed
}

// Transport returns a new http.Transport whose every connection goes to this listener.
func (l *PipeListener) Transport() *http.Transport {
	return &http.Transport{DialContext: l.DialContext, DisableCompression: true}
}

// Net is a network in memory: several [PipeListener]s by host name. The zero value is ready. A host
// without a listener does not resolve. All methods may be called concurrently.
type Net struct {
	mu    sync.Mutex
	hosts map[string]*PipeListener
}

// Listen puts a listener on a host name, without a port. It fails if the name is taken.
func (n *Net) Listen(host string) (*PipeListener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, taken := n.hosts[host]; taken {
		return nil, fmt.Errorf("host %q has a listener already; give each provider a name of its own", host)
	}
	if n.hosts == nil {
		n.hosts = make(map[string]*PipeListener)
	}
	l := newPipeListener(host, byte(1+len(n.hosts)%250))
	n.hosts[host] = l
	return l, nil
}

// DialContext connects to the listener of the address's host, whatever the port.
func (n *Net) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	n.mu.Lock()
	l := n.hosts[host]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: unknownHost(host)}
	}
	return l.DialContext(ctx, network, addr)
}

// Transport returns a new http.Transport on this network.
func (n *Net) Transport() *http.Transport {
	return &http.Transport{DialContext: n.DialContext, DisableCompression: true}
}

func unknownHost(host string) error {
	return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}
