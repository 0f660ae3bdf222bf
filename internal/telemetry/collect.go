package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"omniroute/failover"
	"omniroute/resilience"
)

// cluster is a collector that shows how this node stands with the others.
type cluster struct {
	engine       *resilience.Engine
	state, nodes *prometheus.Desc
}

var _ prometheus.Collector = (*cluster)(nil)

func newCluster(e *resilience.Engine) *cluster {
	return &cluster{
		engine: e,
		state:  prometheus.NewDesc("omniroute_cluster_state", "1 for how this node stands with the others: single, ok, or isolated.", []string{"state"}, nil),
		nodes:  prometheus.NewDesc("omniroute_cluster_nodes", "Nodes that share a store, by whether they have shown a sign of life lately: live or stale.", []string{"state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *cluster) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.state
	ch <- c.nodes
}

// Collect implements prometheus.Collector.
func (c *cluster) Collect(ch chan<- prometheus.Metric) {
	s := c.engine.Cluster()
	for _, state := range []string{resilience.ClusterSingle, resilience.ClusterOK, resilience.ClusterIsolated} {
		ch <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, one(s.State == state), state)
	}
	stale := 0
	for i := range s.Nodes {
		if s.Nodes[i].Stale {
			stale++
		}
	}
	ch <- prometheus.MustNewConstMetric(c.nodes, prometheus.GaugeValue, float64(max(s.Count-stale, 0)), "live")
	ch <- prometheus.MustNewConstMetric(c.nodes, prometheus.GaugeValue, float64(stale), "stale")
}

// places is a collector that shows how busy connections are and who waits in line for them.
type places struct {
	each                 func(func(resilience.Key, *failover.Places))
	used, limit, waiting *prometheus.Desc
}

var _ prometheus.Collector = (*places)(nil)

func newPlaces(each func(func(resilience.Key, *failover.Places))) *places {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("omniroute_"+name, help, []string{"provider", "connection"}, nil)
	}
	return &places{
		each:    each,
		used:    desc("connection_calls", "Upstream calls that run on the connection now."),
		limit:   desc("connection_max_calls", "How many may run at once (max_concurrent); connections without a limit are not here."),
		waiting: desc("queue_waiting_requests", "Requests that wait in line for a place on the connection."),
	}
}

// Describe implements prometheus.Collector.
func (p *places) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.used, p.limit, p.waiting} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p *places) Collect(ch chan<- prometheus.Metric) {
	p.each(func(k resilience.Key, at *failover.Places) {
		show := func(d *prometheus.Desc, n int) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), k.Provider, k.Connection)
		}
		show(p.used, at.Used())
		show(p.waiting, at.Waiting())
		if n := at.Most(); n > 0 {
			show(p.limit, n)
		}
	})
}

// sendings is a collector that counts what became of what is sent to others.
type sendings struct {
	desc *prometheus.Desc
	read func() (sent, dropped int64)
}

var _ prometheus.Collector = (*sendings)(nil)

func newSendings(desc *prometheus.Desc, read func() (sent, dropped int64)) *sendings {
	return &sendings{desc, read}
}

// Describe implements prometheus.Collector.
func (s *sendings) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

// Collect implements prometheus.Collector.
func (s *sendings) Collect(ch chan<- prometheus.Metric) {
	sent, dropped := s.read()
	ch <- prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, float64(sent), "sent")
	ch <- prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, float64(dropped), "dropped")
}

// headroom is a collector that shows what connections have left of their rate limits.
type headroom struct {
	each func(func(provider, connection string, left float64))
	desc *prometheus.Desc
}

var _ prometheus.Collector = (*headroom)(nil)

func newHeadroom(each func(func(provider, connection string, left float64))) *headroom {
	return &headroom{each, prometheus.NewDesc("omniroute_connection_headroom_ratio",
		"The share that is left of the connection's scarcest rate limit, 0 to 1; connections of which nothing fresh is known are not here.", []string{"provider", "connection"}, nil)}
}

// Describe implements prometheus.Collector.
func (h *headroom) Describe(ch chan<- *prometheus.Desc) { ch <- h.desc }

// Collect implements prometheus.Collector. The limits' names are the upstreams' words and become no labels.
func (h *headroom) Collect(ch chan<- prometheus.Metric) {
	least := map[[2]string]float64{}
	h.each(func(provider, connection string, left float64) {
		key := [2]string{provider, connection}
		if old, ok := least[key]; !ok || left < old {
			least[key] = left
		}
	})
	for key, left := range least {
		ch <- prometheus.MustNewConstMetric(h.desc, prometheus.GaugeValue, left, key[0], key[1])
	}
}
