// Command omnibench measures a gateway: a suite of rows beside their references, and its parts
// for measuring any gateway by hand.
//
//	omnibench run -binary bin/omniroute            everything, as `make bench` does
//	omnibench run -url http://127.0.0.1:4000 …     a gateway that runs already
//	omnibench load -url URL -model NAME -rate 200  an open-loop load
//	omnibench upstream                             a lean and two failing providers
//	omnibench proxy -to URL                        the reference
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"omniroute/bench/load"
	"omniroute/bench/reference"
	"omniroute/bench/suite"
	"omniroute/bench/upstream"
)

const usage = `usage: omnibench run|load|upstream|proxy [flags]; -h after a command lists its flags`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(context.Context, *flag.FlagSet, []string) error{
		"run": run, "load": offer, "upstream": serve, "proxy": proxy,
	}
	command := commands[os.Args[1]]
	if command == nil {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := command(ctx, flag.NewFlagSet(os.Args[1], flag.ExitOnError), os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "omnibench:", err)
		os.Exit(1)
	}
}

// errBounds says that a row does not hold.
var errBounds = errors.New("not every row is within its bound")

func run(ctx context.Context, f *flag.FlagSet, args []string) error {
	o := suite.Options{Progress: os.Stderr, Short: os.Getenv("BENCH_SHORT") != ""}
	f.StringVar(&o.Binary, "binary", "bin/omniroute", "the omniroute to measure")
	f.StringVar(&o.URL, "url", "", "measure a gateway that runs at this URL instead; it has to know the lean provider's models (see -lean-port)")
	f.IntVar(&o.PID, "pid", 0, "process id of the gateway at -url, for its CPU time and memory")
	f.IntVar(&o.LeanPort, "lean-port", 0, "port on 127.0.0.1 of the lean provider; 0 takes any")
	f.StringVar(&o.Key, "key", "", "client key of the gateway at -url")
	f.StringVar(&o.Model, "model", "%s", "what the gateway at -url calls the lean provider's models fast, paced, brief and held")
	f.BoolVar(&o.Short, "short", o.Short, "a quick and rough pass; BENCH_SHORT=1 does the same")
	rows := f.String("rows", "", "regexp of the rows to measure; default all")
	out := f.String("out", "bench/results", "folder for the report and the raw data")
	_ = f.Parse(args) // ExitOnError
	var err error
	if o.Rows, err = regexp.Compile(*rows); err != nil {
		return fmt.Errorf("-rows: %w", err)
	}
	if o.Self, err = os.Executable(); err != nil {
		return err
	}
	if o.Binary, err = filepath.Abs(o.Binary); err != nil {
		return err
	}
	report, err := suite.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := report.Write(*out); err != nil {
		return err
	}
	fmt.Printf("%s\n%s\nTook %s; raw data in %s.\n", report.Table(), report.Machine, report.Took, *out)
	if !report.Holds() {
		return errBounds
	}
	return nil
}

func offer(ctx context.Context, f *flag.FlagSet, args []string) error {
	url := f.String("url", "http://127.0.0.1:20128", "the gateway")
	key := f.String("key", "", "a client key")
	model := f.String("model", "", "the model to ask for")
	name := f.String("shape", "chat", "chat, stream, agent or agent-stream")
	rate := f.Float64("rate", 20, "requests a second")
	d := f.Duration("for", 10*time.Second, "how long")
	_ = f.Parse(args) // ExitOnError
	if *model == "" || *rate <= 0 || *d <= 0 {
		return errors.New("name a -model, and a -rate and a -for above 0")
	}
	var shape load.Shape
	for _, s := range load.Shapes() {
		if s.Name == *name {
			shape = s
		}
	}
	if shape.Name == "" {
		return fmt.Errorf("there is no shape %q; take chat, stream, agent or agent-stream", *name)
	}
	client := load.NewClient(strings.TrimSuffix(*url, "/"), *key)
	defer client.Close()
	plan := load.Plan{Client: client, Shape: load.Only(shape), Model: *model, Rate: *rate, Count: max(1, int(*rate*d.Seconds()))}
	r := plan.Go(ctx)
	fmt.Printf("%d requests in %v, %d errors\n", len(r.Samples), r.Took.Round(time.Millisecond), r.Errors())
	if r.Errors() > 0 {
		fmt.Println("one of the errors:", r.FirstError())
	}
	fmt.Printf("%-22s %12s %12s %12s %12s\n", "", "p50", "p90", "p99", "max")
	for _, c := range []struct {
		what string
		of   func(*load.Sample) time.Duration
	}{{"first content", load.First}, {"whole answer", load.Total}, {"longest gap", load.Gap}, {"generator late by", load.Late}} {
		v := r.Column(c.of)
		q := func(q float64) time.Duration { return load.Quantile(v, q).Round(time.Microsecond) }
		fmt.Printf("%-22s %12v %12v %12v %12v\n", c.what, q(.5), q(.9), q(.99), q(1))
	}
	return nil
}

func serve(ctx context.Context, f *flag.FlagSet, args []string) error {
	host := f.String("host", "127.0.0.1", "address to listen on")
	port := f.Int("lean-port", 0, "port of the lean provider; 0 takes any")
	_ = f.Parse(args) // ExitOnError
	return upstream.Serve(ctx, *host, *port, os.Stdout)
}

func proxy(ctx context.Context, f *flag.FlagSet, args []string) error {
	listen := f.String("listen", "127.0.0.1:0", "address to listen on")
	to := f.String("to", "", "URL of the upstream")
	key := f.String("key", "lean-key", "the upstream's credential")
	_ = f.Parse(args) // ExitOnError
	return reference.Serve(ctx, *listen, *to, *key, os.Stdout)
}
