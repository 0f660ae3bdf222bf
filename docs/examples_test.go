package docs_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"omniroute/internal/config"
	"omniroute/internal/lab"
	"omniroute/internal/lab/simulate"
)

// everySet is an environment in which every variable is set.
func everySet(name string) (string, bool) {
	switch name {
	case "OMNIROUTE_LISTEN":
		return "0.0.0.0:20128", true
	case "OMNIROUTE_METRICS_LISTEN":
		return "0.0.0.0:9464", true
	case "ALERT_URL":
		return "https://hooks.example/x", true
	}
	return "value-of-" + name, true
}

// TestConfigurationsParse loads every YAML example as the program would. What is no configuration
// of ours says so behind the word yaml.
func TestConfigurationsParse(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range pages(t) {
		for _, f := range p.fences {
			if f.info == "yaml schedule" {
				if _, err := simulate.Parse("example.yaml", []byte(f.text)); err != nil {
					t.Errorf("%s:%d: %v", p.name, f.line, err)
				}
			}
			if f.info != "yaml" {
				continue
			}
			found++
			if _, _, err := config.Parse("example.yaml", []byte(f.text), everySet); err != nil {
				t.Errorf("%s:%d: %v", p.name, f.line, err)
			}
		}
	}
	if found < 2 {
		t.Errorf("found %d examples, so that nothing was checked", found)
	}
}

func TestJSONParses(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range pages(t) {
		for _, f := range p.fences {
			if f.info != "json" {
				continue
			}
			found++
			var v any
			if err := json.Unmarshal([]byte(f.text), &v); err != nil {
				t.Errorf("%s:%d: %v", p.name, f.line, err)
			}
		}
	}
	if found == 0 {
		t.Error("no example was found")
	}
}

// TestMetricsExist looks each metric that a page names up in the source that makes them, and the
// other way round for the page that lists them.
func TestMetricsExist(t *testing.T) {
	t.Parallel()
	source := read(t, "internal/telemetry/vectors.go") + read(t, "internal/telemetry/gates.go") + read(t, "internal/telemetry/metrics.go") + read(t, "internal/telemetry/collect.go")
	made := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:(?:counter|histogram|desc|NewDesc|newGapVec)\(\s*|Name: )"(?:omniroute_)?([a-z_]+)"`).FindAllStringSubmatch(source, -1) {
		if m[1] != "" && m[1] != "omniroute_" {
			made[m[1]] = true
		}
	}
	if len(made) < 20 {
		t.Fatalf("found %d metrics in the source: %v", len(made), made)
	}
	page := read(t, "docs/operating.md")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bomniroute_([a-z_]+)`).FindAllStringSubmatch(page, -1) {
		named[m[1]] = true
	}
	for name := range named {
		if !made[name] {
			t.Errorf("docs/operating.md names omniroute_%s, which there is not", name)
		}
	}
	for name := range made {
		if !named[name] {
			t.Errorf("docs/operating.md says nothing of omniroute_%s", name)
		}
	}
	for _, p := range pages(t) {
		for _, f := range p.fences {
			for _, m := range regexp.MustCompile(`\bomniroute_([a-z_]+)[{\[ ]`).FindAllStringSubmatch(f.text, -1) {
				if !made[strings.TrimSuffix(strings.TrimSuffix(m[1], "_bucket"), "_sum")] {
					t.Errorf("%s:%d: there is no metric omniroute_%s", p.name, f.line, m[1])
				}
			}
		}
	}
}

// TestSimulatePage finds every fault and every key of a schedule on the page about them, and plays
// the schedules that are handed out.
func TestSimulatePage(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/simulate.md")
	for _, f := range lab.Faults() {
		if !strings.Contains(page, "| `"+f.Name) {
			t.Errorf("docs/simulate.md does not name the fault %s", f.Name)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[simulate.File](), reflect.TypeFor[simulate.Traffic](), reflect.TypeFor[simulate.Upstream](),
		reflect.TypeFor[simulate.Limit](), reflect.TypeFor[simulate.Event]()} {
		for i := range of.NumField() {
			if key := of.Field(i).Tag.Get("yaml"); key != "" && !regexp.MustCompile(`\b`+key+`\b`).MatchString(page) {
				t.Errorf("docs/simulate.md does not name the key %s", key)
			}
		}
	}
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, file := range files {
		if _, err := simulate.Load(file); err != nil {
			t.Error(err)
		}
	}
}
