package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"omniroute/internal/relay"
)

// CutError says that requests were still running when the time to finish was over.
type CutError struct {
	Requests int
	// Impatient says that a second signal ended that time.
	Impatient bool
}

// Error says how many, and what to do.
func (e *CutError) Error() string {
	what := "1 request was"
	if e.Requests != 1 {
		what = fmt.Sprintf("%d requests were", e.Requests)
	}
	if e.Impatient {
		return what + " cut off by the second signal"
	}
	return what + " cut off, since the time to finish was over; a longer shutdown_grace gives more"
}

// Stop ends the gateway: /readyz says no, new requests are refused, and those that run may finish
// until ctx ends; then they are cut, with an error in the client's dialect that tells it why, and a
// *CutError says so. The state is written in any case.
//
// A gateway that did not start, or is stopped, needs no stop; then Stop does nothing.
func (m *Main) Stop(ctx context.Context) error {
	cut, err := m.stop(ctx)
	if cut > 0 {
		err = errors.Join(&CutError{Requests: cut}, err)
	}
	return err
}

// stop also returns how many requests were cut.
func (m *Main) stop(ctx context.Context) (cut int, err error) {
	select {
	case <-m.loaded:
	default:
		return 0, nil
	}
	if m.draining.Swap(true) {
		return 0, nil
	}
	if m.watch != nil {
		m.watch.stop()
	}
	m.gateway.Drain()
	m.admin.Close()
	m.dashboard.Close()
	// The listener stays open meanwhile, so that who asks is told to go elsewhere.
	n, idle := m.requests.running()
	if n > 0 {
		m.log.Info("shutting down; waiting for requests to finish", "requests", n)
	}
	select {
	case <-idle:
	case <-ctx.Done():
		cut, _ = m.requests.running()
	}
	err = m.abandon(cut == 0)
	m.log.Info("stopped")
	return cut, err
}

// abandon ends all that was begun, in the order in which it depends on each other. polite says that
// answers which are complete may still get out of the door.
func (m *Main) abandon(polite bool) error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), m.o.times.cut)
	defer cancel()
	if polite {
		_ = m.http.Shutdown(ctx)
	}
	m.cut(relay.ErrShuttingDown)
	if !polite {
		last, cancel := context.WithTimeout(ctx, m.o.times.lastWords)
		_ = m.http.Shutdown(last) // who does not read is cut below
		cancel()
	}
	_ = m.http.Close() // closes a listener that is closed already
	<-m.served
	_, idle := m.requests.running()
	select {
	case <-idle:
	case <-ctx.Done():
		errs = append(errs, errors.New("requests go on although they were cut; this is a bug"))
	}
	if m.cert != nil {
		m.cert.stop()
	}
	if m.scrapes != nil {
		m.scrapes.stop(ctx)
	}
	if m.keys != nil {
		m.keys.Stop()
	}
	if m.metrics != nil {
		m.metrics.Close()
	}
	if m.runner != nil {
		m.runner.Close()
	}
	if m.gateway != nil {
		m.gateway.Close()
	}
	if m.outcomes != nil {
		m.outcomes.Close()
	}
	if m.admin != nil {
		m.admin.Close()
		m.admin.CloseTrail()
		m.dashboard.Close()
	}
	if m.engine != nil {
		flush, cancel := context.WithTimeout(context.Background(), m.o.times.flush)
		defer cancel()
		errs = append(errs, m.engine.Stop(flush))
	}
	if m.store != nil {
		errs = append(errs, m.store.Close())
	}
	if m.alerts != nil { // the last, since other people's servers are waited for
		told, cancel := context.WithTimeout(context.Background(), m.o.times.alert)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() { m.traces.Stop(told) })
		m.alerts.Stop(told)
		both.Wait()
	}
	return errors.Join(errs...)
}
