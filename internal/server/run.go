package server

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Run runs a gateway until SIGINT, SIGTERM or the end of ctx. Then it drains: requests have the
// configuration's shutdown_grace to finish, a second signal ends them at once. SIGHUP reloads.
// started is called when requests are answered; nil is fine.
//
// That the grace was too short for some is logged and no error; an impatient second signal is one.
func Run(ctx context.Context, o Options, started func(*Main)) error {
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)

	m := New(o)
	gatherStray(m.log)
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		defer collectLess()()
		failed <- m.Start(starting)
	}()
	select {
	case err := <-failed:
		if err != nil {
			return err
		}
	case <-stop:
		cancel()
		if err := <-failed; err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		return m.Stop(ctx)
	}
	if started != nil {
		started(m)
	}
	for {
		select {
		case <-reload:
			_ = m.reloadBy("signal") // it is logged, and the old one stays
			continue
		case <-stop:
		case <-ctx.Done():
		}
		break
	}
	grace, cutShort := context.WithTimeout(context.WithoutCancel(ctx), m.Config().ShutdownGrace)
	defer cutShort()
	impatient := false
	type end struct {
		cut int
		err error
	}
	done := make(chan end, 1)
	go func() {
		cut, err := m.stop(grace)
		done <- end{cut, err}
	}()
	var e end
	select {
	case e = <-done:
	case <-stop:
		impatient = true
		cutShort()
		signal.Stop(stop) // the third ends the process as if nobody listened
		e = <-done
	}
	if e.cut > 0 && impatient {
		return errors.Join(&CutError{Requests: e.cut, Impatient: true}, e.err)
	}
	if e.cut > 0 {
		m.log.Warn("not all requests could finish", "error", &CutError{Requests: e.cut})
	}
	return e.err
}

// collectLess makes the garbage collector run less often until the returned function is called: while
// a large state is loaded nearly all that is allocated stays. What somebody has set is left alone.
func collectLess() (usual func()) {
	const percent, loading = 100, 400
	old := debug.SetGCPercent(loading)
	if old != percent {
		debug.SetGCPercent(old)
		return func() {}
	}
	return func() { debug.SetGCPercent(old) }
}
