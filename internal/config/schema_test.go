package config

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

func resolvedSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := SchemaJSON()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// asJSON reads YAML as an editor does.
func asJSON(t *testing.T, src string) any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(src))
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaAcceptsTheExamples(t *testing.T) {
	t.Parallel()
	schema := resolvedSchema(t)
	for _, name := range []string{"testdata/full.yaml", "testdata/example.yaml"} {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, string(src))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		mustParse(t, string(src))
	}
	if err := schema.Validate(asJSON(t, string(Init(variables)))); err != nil {
		t.Errorf("what Init writes: %v", err)
	}
}

// TestSchemaAgreesWithParse puts the same values to both. What depends on more than one place (names, contradictions)
// no schema can say and is not asked here.
func TestSchemaAgreesWithParse(t *testing.T) {
	t.Parallel()
	schema := resolvedSchema(t)
	const base = "providers:\n  ollama: {}\n  acme:\n    base_url: https://llm.acme.example/v1\n    connections: [{id: k1, api_key: abcdefgh}]\n"
	for _, c := range []struct {
		src   string
		valid bool
	}{
		{"", true},
		{"listen: 127.0.0.1:1", true}, {"listen: 1", false}, {"listen:", false}, {"listen: [a]", false},
		{"client_keys: [abc]", true}, {"client_keys: []", false}, {"client_keys: abc", false}, {"client_keys: [1]", false}, {`client_keys: [""]`, false},
		{"admin_token: abc", true}, {"admin_token: 5", false}, {`admin_token: ""`, false},
		{"max_body: 64MiB", true}, {"max_body: 1000", true}, {"max_body: 1.5MB", true}, {"max_body: 0", false}, {"max_body: 0KiB", false}, {"max_body: 64 pages", false}, {"max_body: -1", false}, {`max_body: "${NONE:-1MiB}"`, true},
		{"shutdown_grace: 30s", true}, {"shutdown_grace: 0s", true}, {"shutdown_grace: 0", true}, {"shutdown_grace: 30", false}, {"shutdown_grace: 1h30m", true}, {"shutdown_grace: 1.5h", true}, {"shutdown_grace: -1s", false}, {"shutdown_grace: s", false}, {"shutdown_grace: true", false},
		{"record: {file: o.jsonl}", true}, {"record: {file: o.jsonl, max_size: 1MiB}", true}, {"record: {max_size: 1MiB}", true}, {"record: {file: o.jsonl, max_size: 0}", false}, {"record: {}", true}, {"record:", true}, {"record: o.jsonl", false},
		{"metrics_listen: 127.0.0.1:1", true}, {`metrics_listen: ""`, true}, {"metrics_listen: 9464", false}, {"metrics_listen: [a]", false},
		{"relay: {max_attempts: 6}", true}, {"relay: {max_attempts: 0}", false}, {"relay: {max_attempts: 101}", false}, {"relay: {max_attempts: 1.5}", false}, {`relay: {max_attempts: "6"}`, false}, {`relay: {max_attempts: "${FIVE}"}`, true},
		{"relay: {deadline: 0s}", false}, {"relay: {deadline: 0m0s}", false}, {"relay: {deadline: 10m}", true}, {"relay:", true}, {"relay: {nothing: 1}", false}, {"relay: 5", false},
		{"relay: {patience_for: any}", true}, {"relay: {patience_for: all}", false}, {"relay: {suspect_after: auto}", true}, {"relay: {suspect_after: 3s}", true}, {"relay: {suspect_after: soon}", false},
		{"relay: {queue: {depth: 0, wait: 0s, recovery: 5}}", true}, {"relay: {queue: {depth: -1}}", false},
		{"resilience: {breaker: {degraded_threshold: auto}}", true}, {"resilience: {breaker: {degraded_threshold: 2}}", true}, {`resilience: {breaker: {degraded_threshold: "2"}}`, false}, {"resilience: {breaker: {degraded_threshold: never}}", false},
		{"resilience: {breaker: {early_probes: []}}", true}, {"resilience: {breaker: {early_probes: [2s]}}", true}, {"resilience: {breaker: {early_probes: [0s]}}", false}, {"resilience: {breaker: {early_probes: 2s}}", false},
		{"resilience: {breaker: {max_backoff_multiplier: 1.5}}", true}, {"resilience: {breaker: {max_backoff_multiplier: 0.5}}", false},
		{"resilience: {breaker: {cooldown_by_kind: {server_error: 1m}}}", true}, {"resilience: {breaker: {cooldown_by_kind: {rate_limit: 1m}}}", false}, {"resilience: {breaker: {cooldown_by_kind: }}", true},
		{"resilience: {cooldown: {cooldown_by_kind: {rate_limit: 1m}, jitter: 0.5}}", true}, {"resilience: {cooldown: {jitter: 10%}}", true}, {"resilience: {cooldown: {jitter: 2}}", false}, {"resilience: {cooldown: {max_level: 16}}", false},
		{"resilience: {recheck: {after: 0s}}", true}, {"resilience: {recheck: {alone: 0s}}", false}, {"resilience: {hints: {max: 1h}}", true},
		{"combos: {c: {targets: [acme/x]}}", true}, {"combos: {c: {targets: [{target: acme/x, weight: 2}]}}", true}, {"combos: {c: {targets: []}}", false}, {"combos: {c: {targets: acme/x}}", false}, {"combos: {c: {}}", false}, {"combos: {c: }", false}, {"combos:", true},
		{"combos: {c: {targets: [{weight: 2}]}}", false}, {"combos: {c: {targets: [5]}}", false}, {"combos: {c: {targets: [{target: acme/x, weight: 0}]}}", false},
		{"combos: {c: {targets: [acme/x], strategy: round-robin}}", true}, {"combos: {c: {targets: [acme/x], strategy: headroom}}", true}, {"combos: {c: {targets: [acme/x], hedge: {after: 8s}}}", true},
		{"combos: {c: {targets: [acme/x], hedge: {}}}", true}, {"combos: {c: {targets: [acme/x], hedge: {after: p95, budget: 100%}}}", true}, {"combos: {c: {targets: [acme/x], hedge: {budget: 0.01}}}", true},
		{"combos: {c: {targets: [acme/x], hedge: {after: p96}}}", false}, {"combos: {c: {targets: [acme/x], hedge: {after: 0s}}}", false}, {"combos: {c: {targets: [acme/x], hedge: {budget: 0%}}}", false}, {"combos: {c: {targets: [acme/x], hedge: {budget: 0}}}", false}, {"combos: {c: {targets: [acme/x], hedge: {budget: 1.01}}}", false},
		{"combos: {c: {targets: [acme/x], queue: {depth: 1}}}", false}, {"combos: {c: {targets: [acme/x], deadline: 1m}}", true},
		{"error_rules: [{status: 429, scope: model}]", true}, {"error_rules: [{status: 5xx, scope: model}]", true}, {"error_rules: [{status: [429, 500-504], scope: model}]", true}, {"error_rules: [{status: 42, scope: model}]", false}, {"error_rules: [{status: 429}]", false},
		{"error_rules: [{status: 429, scope: none}]", false}, {"error_rules: [{text: [a, b], scope: model}]", true}, {"error_rules: [{text: [], scope: model}]", false}, {"error_rules: [{text: a, scope: model, kind: rate_limit, certain: true, backoff: false}]", true}, {"error_rules: [{text: a, scope: model, certain: yes}]", false},
		{"error_rules: {text: a}", false},
	} {
		src := base + c.src + "\n"
		_, _, err := parseText(src)
		if (err == nil) != c.valid {
			t.Errorf("Parse of %q: %v, want valid %v", c.src, err, c.valid)
		}
		if err := schema.Validate(asJSON(t, src)); (err == nil) != c.valid {
			t.Errorf("the schema of %q: %v, want valid %v", c.src, err, c.valid)
		}
	}
	for _, c := range []struct {
		provider string
		valid    bool
	}{
		{"{}", true}, {"", true}, {"{dialect: openai}", true}, {"{dialect: [openai]}", true}, {"{dialect: gemini, base_url: http://127.0.0.1:1/v1beta}", true}, {"{dialect: latin}", false}, {"{dialect: []}", false},
		{"{models: [a, {id: b, context: 5}]}", true}, {"{models: a}", false}, {"{models: [{context: 5}]}", false}, {"{models: []}", true}, {"{models: [{id: a, first_token_timeout: 3m}]}", true},
		{"{rate_limit_scope: model}", true}, {"{rate_limit_scope: provider}", false}, {"{headers: {a: b}}", true}, {"{headers: {a: 5}}", false}, {"{headers: [a]}", false}, {"{headers: }", true},
		{"{proxy: http://127.0.0.1:1}", true}, {`{proxy: ""}`, true}, {"{proxy: 5}", false}, {"{connections: []}", false}, {"{connections: [{api_key: a}]}", false}, {"{connections: [{id: a, max_concurrent: 5}]}", true}, {"{connections: [{id: a, max_concurrent: 0}]}", false},
		{"{connections: [{id: a, weight: 2, base_url: http://127.0.0.1:2/v1}]}", true}, {"{resilience: {breaker: {reset_timeout: 1s}}}", true}, {"{resilience: {breakers: {}}}", false}, {"{first_token_timeout: 1s}", true}, {"{connect_timeout: 1s}", false},
	} {
		src := "providers:\n  ollama: " + c.provider + "\n"
		_, _, err := parseText(src)
		if (err == nil) != c.valid {
			t.Errorf("Parse of %q: %v, want valid %v", c.provider, err, c.valid)
		}
		if err := schema.Validate(asJSON(t, src)); (err == nil) != c.valid {
			t.Errorf("the schema of %q: %v, want valid %v", c.provider, err, c.valid)
		}
	}
	for _, src := range []string{"providers: {}\n", "providers:\n", "listen: 127.0.0.1:1\n", "providers: []\n", `providers: {"a b": {base_url: "http://x/v1", connections: [{id: a}]}}` + "\n"} {
		if _, _, err := parseText(src); err == nil {
			t.Errorf("Parse accepts %q", src)
		}
		if err := schema.Validate(asJSON(t, src)); err == nil {
			t.Errorf("the schema accepts %q", src)
		}
	}
}

// TestEveryKeyIsKnown parses the format's whole example.
func TestEveryKeyIsKnown(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/all-keys.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = parseText(string(src)); err != nil {
		t.Error(err)
	}
}

// TestDefaultsInTheTable compares what the table shows with what a file that says nothing gets.
func TestDefaultsInTheTable(t *testing.T) {
	t.Parallel()
	const base = "providers: {ollama: {}}\n"
	plain := mustParse(t, base)
	var b strings.Builder
	b.WriteString(base)
	for _, f := range root.fields {
		needed := slices.ContainsFunc(f.fields, func(below field) bool { return below.required }) // it has no meaning without more
		if d := f.defaults(); d != "" && d != "{}" && f.kind != kindMap && !needed {
			b.WriteString(f.key + ": " + d + "\n")
		}
	}
	written := mustParse(t, b.String())
	for _, c := range []struct {
		what       string
		want, have any
	}{
		{"listen", plain.Listen, written.Listen}, {"store", plain.Store, written.Store}, {"max_body", plain.MaxBody, written.MaxBody},
		{"shutdown_grace", plain.ShutdownGrace, written.ShutdownGrace}, {"relay", plain.Relay, written.Relay},
		{"resilience", plain.Resilience, written.Resilience},
	} {
		if diff := cmp.Diff(c.want, c.have); diff != "" {
			t.Errorf("%s: the default in the table is another one than that in the code (-code +table):\n%s", c.what, diff)
		}
	}
}
