package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"omniroute/bench/load"
	"omniroute/bench/proc"
	"omniroute/bench/upstream"
)

// Options say what to measure.
type Options struct {
	// Self is this program, started again as upstream and reference; Binary is omniroute.
	Self, Binary string
	// URL and PID are a gateway that runs already, in place of Binary. The rows that need a
	// gateway of their own are left out. LeanPort is where it expects the lean provider, Key what
	// it wants from clients, Model what makes its model name of the lean provider's ("%s").
	URL, Key, Model string
	PID, LeanPort   int
	// Short makes everything quick and rough.
	Short bool
	// Rows selects by ID; nil means all.
	Rows *regexp.Regexp
	// Progress gets a line now and then.
	Progress io.Writer
}

// bench is one run of the suite.
type bench struct {
	Options
	dir string
	// hot is the core of what is measured, cool those of load and upstream. Both are empty on a
	// machine with one core.
	hot, cool []int

	up      upstream.Addresses
	control *upstream.Control
	ours    side
	bare    side
}

// side is one of two gateways that are compared.
type side struct {
	name   string
	client *load.Client
	pid    int
	model  func(lean string) string
	stop   func() error
}

// row is a measurement: it makes one row or several, and needs the pair of gateways or its own.
type row struct {
	ids  []string
	own  bool
	make func(*bench, context.Context) ([]Row, error)
}

func rows() []row {
	return []row{
		{ids: []string{"memory-idle", "memory-stream"}, make: (*bench).memory},
		{ids: []string{"cpu-chat", "cpu-stream", "cpu-agent", "cpu-burst"}, make: (*bench).cpu},
		{ids: []string{"ttft"}, make: (*bench).ttft},
		{ids: []string{"dispatch"}, make: (*bench).dispatch},
		{ids: translateIDs(), make: (*bench).translate},
		{ids: []string{"restart"}, own: true, make: (*bench).restart},
		{ids: []string{"fault-429", "fault-500", "fault-hang"}, own: true, make: (*bench).faults},
	}
}

// Run measures and returns the report. Rows that could not be measured say so; the error is for
// what keeps everything from being measured.
func Run(ctx context.Context, o Options) (*Report, error) {
	b := &bench{Options: o}
	if b.Progress == nil {
		b.Progress = io.Discard
	}
	if cores := proc.Cores(); len(cores) > 1 {
		b.hot, b.cool = cores[:1], cores[1:]
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "omnibench-"); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(b.dir) }() // what is left is the system's to clean
	report := &Report{Machine: machine(), Started: time.Now().UTC().Truncate(time.Second), Short: b.Short}
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		return errors.Join(b.ours.end(), b.bare.end(), proc.Pin(nil))
	}
	for _, r := range rows() {
		if !b.wanted(r.ids) || r.own && b.URL != "" {
			continue
		}
		if r.own { // these have gateways of their own and the machine to themselves
			if err := stop(); err != nil {
				return nil, err
			}
		}
		b.say("measuring %v", r.ids)
		made, err := r.make(b, ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, errors.Join(context.Cause(ctx), stop())
			}
			made = append(made, Row{ID: r.ids[0], What: r.ids[0], Failed: err.Error()})
		}
		for _, m := range made {
			if b.wanted([]string{m.ID}) {
				report.Rows = append(report.Rows, m)
			}
		}
	}
	err = stop()
	report.Machine.Load[1] = loadAverage()
	report.Took = time.Since(report.Started).Round(time.Second).String()
	return report, err
}

func (b *bench) wanted(ids []string) bool {
	for _, id := range ids {
		if b.Rows == nil || b.Rows.MatchString(id) {
			return true
		}
	}
	return false
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.Progress, format+"\n", args...)
}

// pick returns the first of two values, the second in a short run.
func pick[T any](b *bench, long, short T) T {
	if b.Short {
		return short
	}
	return long
}

func (s *side) end() error {
	if s.stop == nil {
		return nil
	}
	s.client.Close()
	return s.stop()
}

// start brings up the upstream, the reference and the gateway.
func (b *bench) start(ctx context.Context) error {
	up, err := proc.Start(ctx, proc.Spec{Name: "upstream", Path: b.Self, Cores: b.cool, Answer: &b.up,
		Args: []string{"upstream", "-lean-port", fmt.Sprint(b.LeanPort)}})
	if err != nil {
		return err
	}
	b.control = upstream.NewControl(b.up.Control)
	var at struct{ URL string }
	ref, err := proc.Start(ctx, proc.Spec{Name: "reference", Path: b.Self, Cores: b.hot, Answer: &at,
		Args: []string{"proxy", "-to", b.up.Lean, "-key", leanKey}})
	if err != nil {
		return errors.Join(err, up.Stop())
	}
	b.bare = side{name: "reference", client: load.NewClient(at.URL, ""), pid: ref.PID, model: func(m string) string { return m },
		stop: func() error { return errors.Join(ref.Stop(), up.Stop()) }}
	if err := b.startOurs(ctx); err != nil {
		return errors.Join(err, b.bare.end())
	}
	return proc.Pin(b.cool)
}

func (b *bench) startOurs(ctx context.Context) error {
	if b.URL != "" {
		b.ours = side{name: "gateway", client: load.NewClient(b.URL, b.Key), pid: b.PID, stop: func() error { return nil },
			model: func(m string) string { return fmt.Sprintf(b.Model, m) }}
		return nil
	}
	g, err := b.gateway(ctx, filepath.Join(b.dir, "gateway"), leanConfig(b.up.Lean), b.hot)
	if err != nil {
		return err
	}
	b.ours = side{name: "gateway", client: load.NewClient(g.url, ""), pid: g.proc.PID, model: func(m string) string { return "bench-" + m }, stop: g.stop}
	return nil
}
