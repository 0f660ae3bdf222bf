package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"omniroute/internal/lab"
)

// Addresses say where the parts of an upstream process listen, as "http://HOST:PORT".
type Addresses struct {
	Control string `json:"control"`
	// Lean is the lean provider.
	Lean string `json:"lean"`
	// Primary and Fallback are the simulated providers, each on its own port and so its own
	// failure domain.
	Primary  string `json:"primary"`
	Fallback string `json:"fallback"`
}

// Keys of the simulated providers.
const (
	Key1 = "key-1" // connection k1 of the primary
	Key2 = "key-2" // connection k2 of the primary
	Key3 = "key-3" // connection only of the fallback
)

// Pace is how the simulated providers take their time when they are well.
var Pace = lab.Latency{
	FirstContent: lab.Delay{Median: 20 * time.Millisecond, Sigma: 0.3, Max: 100 * time.Millisecond},
	Gap:          lab.Delay{Median: 5 * time.Millisecond},
}

// Serve runs an upstream until ctx ends. It listens on host; leanPort fixes the port of the lean
// provider, 0 takes any. It writes its addresses to out as one line of JSON once everything
// listens.
func Serve(ctx context.Context, host string, leanPort int, out io.Writer) error {
	primary := lab.New(lab.Options{Name: "primary", Seed: 1, Keys: map[string]string{Key1: "k1", Key2: "k2"}, Latency: Pace})
	fallback := lab.New(lab.Options{Name: "fallback", Seed: 2, Keys: map[string]string{Key3: "only"}, Latency: Pace})
	lean := NewLean()
	c := &control{lean: lean, providers: map[string]*lab.Provider{"primary": primary, "fallback": fallback}}
	var a Addresses
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	failed := make(chan error, 2)
	listen := func(port int, h http.Handler) (string, error) {
		l, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err != nil {
			return "", fmt.Errorf("the upstream cannot listen: %w", err)
		}
		s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		ends = append(ends, func() { s.Close() })
		go func() {
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
		return "http://" + l.Addr().String(), nil
	}
	var err error
	if a.Lean, err = listen(leanPort, lean); err != nil {
		return err
	}
	if a.Control, err = listen(0, c.handler()); err != nil {
		return err
	}
	for name, at := range map[string]*string{"primary": &a.Primary, "fallback": &a.Fallback} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return fmt.Errorf("the provider %s cannot listen: %w", name, err)
		}
		s := lab.Serve(l, c.providers[name])
		ends = append(ends, s.Close)
		*at = s.URL
	}
	if err := json.NewEncoder(out).Encode(a); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
