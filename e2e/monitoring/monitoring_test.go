// Package monitoring holds the packaged dashboard and alert rules against the metrics that the gateway has, with
// Prometheus' own parser of queries.
package monitoring

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

const packaging = "../../packaging"

// series are the metrics by name, each with the values of its labels.
type series map[string]map[string]map[string]bool

// scrape reads the metrics of a gateway that everything has happened to once.
func scrape(t *testing.T) series {
	t.Helper()
	c := resilience.Config{
		Providers: map[string]resilience.Provider{"acme": {Connections: []resilience.Connection{{ID: "k1"}}, Models: []string{"large"}}},
		Combos:    map[string][]resilience.Key{"coding": {{Provider: "acme", Connection: "k1", Model: "large"}}},
	}
	e, err := resilience.New(resilience.Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	places := new(failover.PlaceSet)
	key := resilience.Key{Provider: "acme", Connection: "k1", Model: "large"}
	places.Limit(map[resilience.Key]int{{Provider: "acme", Connection: "k1"}: 2})
	none := func() (int64, int64) { return 0, 0 }
	m := telemetry.New(telemetry.Options{Engine: e, Config: c, Version: "v1", Waiting: func() int { return 0 }, Panics: func() int64 { return 0 }, CertificateEnds: time.Now, Alerts: none, Spans: none, Places: places.Each,
		Headroom: func(f func(string, string, float64)) { f("acme", "k1", 1) }})
	t.Cleanup(m.Close)
	gaps := new(telemetry.Gaps)
	gaps.Add(time.Second)
	at := time.Now()
	for _, o := range []failover.Outcome{failover.OutcomeAnswered, failover.OutcomeFailed} {
		m.Observe(telemetry.Story{
			At: at, Route: "coding", Stream: true, Status: 200, Code: "upstream_error", Broke: "cut", Duration: 3 * time.Second, FirstContent: time.Second,
			Usage: dialect.Usage{Known: true, Input: 1, Output: 1}, Recovery: &telemetry.Recovery{Outcome: telemetry.Recovered, Way: "restart"},
			Attempts: []failover.Record{{Key: key, At: at.Add(time.Second), Outcome: o, Probe: true, Hedge: true, FirstContent: time.Second, Duration: time.Second}},
			Gaps:     []*telemetry.Gaps{gaps},
		})
	}
	e.MarkAccountUnavailable(key, resilience.KindAuth)
	for range 5 {
		e.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError, RetryAfter: time.Hour * 24 * 300})
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	decode := expfmt.NewTextParser(model.UTF8Validation)
	families, err := decode.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := series{}
	add := func(name string, pairs ...[2]string) {
		if all[name] == nil {
			all[name] = map[string]map[string]bool{}
		}
		for _, p := range append(pairs, [2]string{"instance", ""}, [2]string{"job", ""}) { // Prometheus adds these
			if all[name][p[0]] == nil {
				all[name][p[0]] = map[string]bool{}
			}
			all[name][p[0]][p[1]] = true
		}
	}
	for name, f := range families {
		for _, one := range f.GetMetric() {
			var pairs [][2]string
			for _, l := range one.GetLabel() {
				pairs = append(pairs, [2]string{l.GetName(), l.GetValue()})
			}
			if one.GetHistogram() == nil {
				add(name, pairs...)
				continue
			}
			add(name+"_bucket", append(pairs, [2]string{"le", ""})...)
			add(name+"_sum", pairs...)
			add(name+"_count", pairs...)
		}
	}
	add("up")
	return all
}

// closed are the labels whose values are all in the scrape: a query for another value finds nothing.
var closed = map[string]bool{"state": true}

// check parses a query and looks up each metric and label in it. It returns the metrics.
func check(t *testing.T, all series, where, query string) (named []string) {
	t.Helper()
	for from, to := range map[string]string{"$__rate_interval": "5m", "$__all": ".*", "$instance": ".*", "$provider": ".*", "$route": ".*"} {
		query = strings.ReplaceAll(query, from, to)
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v\n%s", where, err, query)
		return nil
	}
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			named = append(named, n.Name)
			has := all[n.Name]
			if has == nil {
				t.Errorf("%s: there is no metric %s", where, n.Name)
				return nil
			}
			for _, m := range n.LabelMatchers {
				if m.Name == model.MetricNameLabel {
					continue
				}
				if has[m.Name] == nil {
					t.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
				} else if closed[m.Name] && !slices.ContainsFunc(keys(has[m.Name]), m.Matches) {
					t.Errorf("%s: %s is never %s", where, n.Name, m)
				}
			}
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				parser.Inspect(n.Expr, func(below parser.Node, _ []parser.Node) error {
					if v, ok := below.(*parser.VectorSelector); ok && all[v.Name] != nil && all[v.Name][label] == nil {
						t.Errorf("%s: %s has no label %s to group by", where, v.Name, label)
					}
					return nil
				})
			}
		}
		return nil
	})
	return named
}

func keys(m map[string]bool) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

// TestAlertRules: they parse, name what there is, and can say it.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	all := scrape(t)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decode(t, "prometheus/omniroute.rules.yaml", func(b []byte) error { return yaml.UnmarshalWithOptions(b, &file, yaml.Strict()) })
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || r.Alert == "" {
				t.Errorf("%q is there twice", r.Alert)
			}
			seen[r.Alert] = true
			check(t, all, r.Alert, r.Expr)
			if _, err := model.ParseDuration(r.For); r.For != "" && err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) {
				t.Errorf("%s says too little: %v %v", r.Alert, r.Annotations, r.Labels)
			}
			by := grouping(t, r.Expr)
			for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(fmt.Sprint(r.Annotations), -1) {
				if by != nil && !slices.Contains(by, m[1]) {
					t.Errorf("%s speaks of the label %s, which its result has lost", r.Alert, m[1])
				}
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d rules were found", len(seen))
	}
}

// grouping returns the labels of a rule's result where an aggregation sets them, nil where all are kept.
func grouping(t *testing.T, query string) (by []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil // it has been told
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			by = a.Grouping
		}
		return nil
	})
	return by
}

// TestDashboard: every query of every panel, variable and annotation names what there is, and every metric of ours
// has a place on it.
func TestDashboard(t *testing.T) {
	t.Parallel()
	all := scrape(t)
	type target struct{ Expr, LegendFormat, RefID string }
	var board struct {
		UID, Title string
		Panels     []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []target
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	decode(t, "grafana/omniroute.json", func(b []byte) error { return json.Unmarshal(b, &board) })
	shown, ids := map[string]bool{}, map[int]bool{}
	queries := 0
	for i, p := range board.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d (%s) has no id or title of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s shows nothing, or beside the page", p.Title)
		}
		for _, q := range board.Panels[:i] {
			if a, b := p.GridPos, q.GridPos; a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%s lies over %s", p.Title, q.Title)
			}
		}
		for _, one := range p.Targets {
			queries++
			named := check(t, all, p.Title, one.Expr)
			for _, name := range named {
				shown[strings.TrimSuffix(name, "_bucket")] = true
			}
			for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(one.LegendFormat, -1) {
				for _, name := range named {
					if all[name] != nil && all[name][m[1]] == nil {
						t.Errorf("%s: the legend has the label %s, which %s has not", p.Title, m[1], name)
					}
				}
			}
		}
	}
	for _, a := range board.Annotations.List {
		check(t, all, a.Name, a.Expr)
	}
	for _, v := range board.Templating.List {
		m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if v.Type == "query" && (m == nil || all[m[1]][m[2]] == nil) {
			t.Errorf("the variable %s has no values: %s", v.Name, v.Definition)
		}
	}
	if queries < 30 {
		t.Errorf("only %d queries were found", queries)
	}
	for name := range all {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "omniroute_") && !shown[base] && !unshown[base] {
			t.Errorf("the dashboard shows nothing of %s", base)
		}
	}
}

// unshown are metrics that tables and alerts say more of than a chart.
var unshown = map[string]bool{"omniroute_clamped_hints_total": true, "omniroute_breaker_failures": true, "omniroute_connection_max_calls": true,
	"omniroute_certificate_end_timestamp_seconds": true}

func decode(t *testing.T, name string, into func([]byte) error) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(packaging, name))
	if err == nil {
		err = into(b)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
