package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"omniroute/internal/config"
	"omniroute/internal/telemetry"
)

// scrapes is the listener of /metrics where that has an address of its own. It answers nothing else,
// asks for no key, and goes on until the last request of clients has ended, so that a drain can be
// watched.
type scrapes struct {
	listener net.Listener
	http     *http.Server
	served   chan struct{}
}

// serveScrapes opens the listener. Scrapes get 503 until loaded is closed; from then on metrics
// returns what to show.
func serveScrapes(at config.Address, loaded <-chan struct{}, metrics func() *telemetry.Metrics, log *slog.Logger) (*scrapes, error) {
	l, err := listen(at, "metrics_listen")
	if err != nil {
		return nil, err
	}
	show := func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-loaded:
			metrics().Handler().ServeHTTP(w, r)
		default:
			writeLoading(w)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", show)
	s := &scrapes{listener: l, served: make(chan struct{}), http: &http.Server{
		Handler: mux, ReadHeaderTimeout: usual.header, ReadTimeout: usual.header, IdleTimeout: usual.idle, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the listener of /metrics has failed; nobody can scrape", "error", err)
		}
	}()
	return s, nil
}

// stop ends the listener. A scrape that runs may finish until ctx ends.
func (s *scrapes) stop(ctx context.Context) {
	_ = s.http.Shutdown(ctx)
	_ = s.http.Close() // closes a listener that is closed already
	<-s.served
}
