// Package trace sends what became of requests to a collector of OpenTelemetry, over OTLP/HTTP in its JSON form.
//
// Spans are made of stories when a request is over: one for the request and one for each attempt, so that tracing adds
// nothing to a request's way. A collector that is slow or away costs spans, which are counted, and nothing else. No
// prompt, answer or secret is in a span.
//
// The protocol is written here by hand: the official exporter would bring gRPC into the program and a fifth to its size.
package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/internal/config"
	"omniroute/internal/telemetry"
)

const (
	// maxQueue is how many stories may wait; further ones are dropped. maxBatch is how many go in one request, and
	// batchTime how long the first of them waits for others.
	maxQueue  = 2048
	maxBatch  = 256
	batchTime = 2 * time.Second
	// sendTime bounds one try. A batch is tried maxTries times, after pauses of firstRetry, twice that, and so on.
	sendTime   = 10 * time.Second
	maxTries   = 3
	firstRetry = time.Second
)

// Exporter takes stories and sends their spans. It is safe for concurrent use.
type Exporter struct {
	log     *slog.Logger
	version string
	client  *http.Client
	to      atomic.Pointer[config.Tracing] // nil: off
	queue   chan telemetry.Story

	sent, dropped atomic.Int64

	mu      sync.Mutex
	running bool
	stop    chan struct{}
	done    chan struct{}
	life    context.Context
	cut     context.CancelFunc
}

// New returns an Exporter that sends nothing yet.
func New(version string, log *slog.Logger) *Exporter {
	x := &Exporter{
		log: log, version: version, queue: make(chan telemetry.Story, maxQueue), stop: make(chan struct{}), done: make(chan struct{}),
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
		},
	}
	x.life, x.cut = context.WithCancel(context.Background())
	return x
}

// Configure says where spans go from now on; nil means nowhere.
func (x *Exporter) Configure(to *config.Tracing) {
	x.to.Store(to)
	x.mu.Lock()
	defer x.mu.Unlock()
	if to != nil && !x.running {
		x.running = true
		go x.run()
	}
}

// Observe takes in the story of a request that is over. It waits for nothing.
func (x *Exporter) Observe(s telemetry.Story) {
	to := x.to.Load()
	if to == nil {
		return
	}
	select {
	case x.queue <- s:
	default:
		x.dropped.Add(int64(1 + len(s.Attempts)))
	}
}

// Counts returns how many spans were sent, and how many were given up.
func (x *Exporter) Counts() (sent, dropped int64) { return x.sent.Load(), x.dropped.Load() }

// Stop sends what waits until ctx ends.
func (x *Exporter) Stop(ctx context.Context) {
	x.mu.Lock()
	running := x.running
	x.running = true // nothing starts any more
	x.mu.Unlock()
	if running {
		over := context.AfterFunc(ctx, x.cut)
		close(x.stop)
		<-x.done
		over()
	}
	x.cut()
	x.client.CloseIdleConnections()
}

func (x *Exporter) run() {
	defer close(x.done)
	told := false
	for last := false; !last; {
		var batch []telemetry.Story
		select {
		case s := <-x.queue:
			batch = append(batch, s)
		case <-x.stop:
			last = true
		}
		timer := time.NewTimer(batchTime)
	collect:
		for len(batch) < maxBatch && !last {
			select {
			case s := <-x.queue:
				batch = append(batch, s)
			case <-timer.C:
				break collect
			case <-x.stop:
				last = true
			}
		}
		timer.Stop()
		for last && len(x.queue) > 0 {
			batch = append(batch, <-x.queue)
		}
		told = x.export(batch, told)
	}
}

// export sends a batch. told says that the log knows of the trouble already.
func (x *Exporter) export(batch []telemetry.Story, told bool) bool {
	to := x.to.Load()
	var spans []span
	if to != nil {
		for i := range batch {
			spans = appendSpans(spans, &batch[i], to.Sample)
		}
	}
	if len(spans) == 0 {
		return told
	}
	body := encode(spans, to.Service, x.version)
	var err error
	for try, pause := 1, firstRetry; ; try, pause = try+1, 2*pause {
		var again bool
		if again, err = x.send(to, body); err == nil {
			x.sent.Add(int64(len(spans)))
			return false
		}
		if !again || try == maxTries || x.life.Err() != nil {
			break
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-x.life.Done():
		case <-x.stop: // there is not much time left
		}
		timer.Stop()
	}
	x.dropped.Add(int64(len(spans)))
	if !told {
		x.log.Warn("the collector takes no traces; they are dropped until it does", "error", err, "spans", len(spans))
	}
	return true
}

// send makes one try; again says whether another may help.
func (x *Exporter) send(to *config.Tracing, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(x.life, sendTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(to.URL, "/")+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the address cannot be used") // the configuration has checked it
	}
	req.Header.Set("Content-Type", "application/json")
	for _, h := range to.Headers {
		req.Header.Set(h.Name, h.Value.Reveal())
	}
	resp, err := x.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return true, err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	resp.Body.Close()
	switch s := resp.StatusCode; {
	case s/100 == 2:
		return false, nil
	default:
		return s == 429 || s >= 502 && s <= 504, fmt.Errorf("it answers %d", s)
	}
}
