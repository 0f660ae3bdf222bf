package telemetry

import (
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"omniroute/failover"
	"omniroute/resilience"
)

// Options say what Metrics read. Only Engine is needed.
type Options struct {
	// Engine is asked for its status at each scrape and listened to for its events.
	Engine *resilience.Engine
	// Config names what may become a label; see Metrics.Configure.
	Config resilience.Config
	// Version is the program's own, for omniroute_build_info.
	Version string
	// Waiting returns how many requests wait for a target now, Panics how many requests have
	// ended in a recovered panic so far. Without them the metrics are left out.
	Waiting func() int
	Panics  func() int64
	// Places calls its argument with the places of each connection. Without it their metrics are left out.
	Places func(func(connection resilience.Key, p *failover.Places))
	// Headroom calls its argument with the share that is left of each of a connection's known limits. Without it the
	// metric is left out.
	Headroom func(func(provider, connection string, left float64))
	// CertificateEnds returns when the listener's certificate ends. Without it the metric is left out.
	CertificateEnds func() time.Time
	// Alerts returns how many alerts were delivered and given up. Without it the metric is left out.
	Alerts func() (sent, dropped int64)
	// Spans returns how many spans of traces were sent and given up. Without it the metric is left out.
	Spans func() (sent, dropped int64)
	// Logger is told of scrapes that fail. Defaults to slog.Default.
	Logger *slog.Logger
}

// Metrics count what the gateway does, for Prometheus.
//
// What clients and upstreams say never becomes a label: names that the configuration does not
// hold are counted together as "(unlisted)", so that the number of series is bounded by the
// configuration. Its methods are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	log      *slog.Logger
	v        vectors
	known    atomic.Pointer[index]
	stop     func()
	handler  http.Handler
}

// Labels for what has no name of its own.
const (
	unlisted = "(unlisted)" // a name that the configuration does not hold
	noRoute  = "(none)"     // a request that came to no plan
)

// New returns Metrics that listen to the engine until Close.
func New(o Options) *Metrics {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	m := &Metrics{registry: prometheus.NewRegistry(), log: o.Logger, v: newVectors()}
	m.registry.MustRegister(m.v.all()...)
	m.registry.MustRegister(
		newGates(o.Engine),
		newCluster(o.Engine),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "omniroute_build_info", Help: "Always 1; its labels tell which program runs.",
			ConstLabels: prometheus.Labels{"version": o.Version, "goversion": runtime.Version()},
		}, func() float64 { return 1 }),
	)
	if o.Waiting != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "omniroute_waiting_requests", Help: "Requests that wait for a target to recover now.",
		}, func() float64 { return float64(o.Waiting()) }))
	}
	if o.Places != nil {
		m.registry.MustRegister(newPlaces(o.Places))
	}
	if o.CertificateEnds != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "omniroute_certificate_end_timestamp_seconds", Help: "When the listener's certificate ends, as a Unix time.",
		}, func() float64 { return float64(o.CertificateEnds().Unix()) }))
	}
	if o.Alerts != nil {
		m.registry.MustRegister(newSendings(prometheus.NewDesc("omniroute_alerts_total", "Alerts over webhooks, by what became of them: sent, or dropped after many tries.", []string{"result"}, nil), o.Alerts))
	}
	if o.Spans != nil {
		m.registry.MustRegister(newSendings(prometheus.NewDesc("omniroute_trace_spans_total", "Spans of traces, by what became of them: sent, or dropped because the collector did not take them.", []string{"result"}, nil), o.Spans))
	}
	if o.Headroom != nil {
		m.registry.MustRegister(newHeadroom(o.Headroom))
	}
	if o.Panics != nil {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "omniroute_panics_total", Help: "Requests that ended in a recovered panic, which is always a bug.",
		}, func() float64 { return float64(o.Panics()) }))
	}
	m.Configure(o.Config)
	m.stop = o.Engine.Subscribe(m.heard)
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(m.log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: 8,
	})
	return m
}

// Close ends the hold on the engine. What was counted can still be read.
func (m *Metrics) Close() { m.stop() }

// Handler answers scrapes: text, OpenMetrics or protobuf, as the scraper asks. Native histograms
// need protobuf; the other formats show the same histograms in a few fixed buckets.
func (m *Metrics) Handler() http.Handler { return m.handler }
