package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/internal/catalog"
	"omniroute/resilience"
)

func TestAnchorsAndMergeKeys(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
providers:
  vllm: &local
    first_token_timeout: &wait 90s
    answer_timeout: 2m
    models: [a]
  sglang:
    <<: *local
    models: [b]
  lmstudio:
    <<: [{answer_timeout: 7m}, *local]
combos:
  c: {targets: [vllm/a], first_token_timeout: *wait}
`)
	for model, want := range map[string][2]time.Duration{
		"vllm/a": {90 * time.Second, 2 * time.Minute}, "sglang/b": {90 * time.Second, 2 * time.Minute}, "lmstudio/a": {90 * time.Second, 7 * time.Minute},
	} {
		r, err := c.Resolve(model)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]time.Duration{r.Combo.Targets[0].FirstTokenTimeout, r.Combo.Targets[0].AnswerTimeout}; got != want {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
	if got := c.Provider("sglang").Models; len(got) != 1 || got[0].ID != "b" {
		t.Errorf("a merged value replaced the own one: %+v", got)
	}
	if got := c.Combo("c").Relay.FirstTokenTimeout; got != 90*time.Second {
		t.Errorf("the alias is %v", got)
	}
}

// TestAnchorsAreBounded gives a file that grows to 10^9 values: unfolded, it would not fit into any
// memory.
func TestAnchorsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	_, _, err := parseText(b.String())
	if err == nil || !strings.Contains(err.Error(), "200000 values") {
		t.Errorf("%v", err)
	}
}

func TestSourceIsBounded(t *testing.T) {
	t.Parallel()
	for what, src := range map[string]string{
		"larger than 1 MiB": strings.Repeat("# comment\n", 200_000),
		"nested":            "a: " + strings.Repeat("[", 500_000),
		"nested more":       strings.Repeat("- ", 400_000) + "a",
		"UTF-16":            "\xff\xfea\x00",
		"no text":           "a: \x00",
		"UTF-8":             "a: \xc3\x28",
	} {
		_, _, err := parseText(src)
		var all Errors
		if !errors.As(err, &all) || len(all) != 1 || !strings.Contains(err.Error(), strings.TrimSuffix(what, " more")) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestByteOrderMarkAndLineEnds(t *testing.T) {
	t.Parallel()
	mustParse(t, "\ufeffproviders: {ollama: {}}\n")
	mustParse(t, "---\nproviders: {ollama: {}}\n...\n")
	_, _, err := parseText("\ufeffproviders: {ollama: {}}\r\nlisen: x\r\n")
	var all Errors
	if !errors.As(err, &all) || all[0].Line != 2 || all[0].Column != 1 || strings.Contains(err.Error(), "\r") {
		t.Errorf("%v", err)
	}
	// Columns count characters, not bytes.
	_, _, err = parseText("providers: {ollama: {headers: {x-ü: é}, typo: 1}}\n")
	if !errors.As(err, &all) || all[len(all)-1].Column != 41 {
		t.Errorf("%v", err)
	}
}

func TestManyErrorsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "typo%d: 1\n", i)
	}
	_, _, err := parseText(b.String())
	var all Errors
	if !errors.As(err, &all) || len(all) != 1001 {
		t.Fatalf("%d errors, want one for each key and one for providers", len(all))
	}
	if text := err.Error(); strings.Count(text, "\n") > 1000 || !strings.HasSuffix(text, "and 801 more, which are shown once some of these are repaired") {
		t.Errorf("the text is %s", text)
	}
	var one *Error
	if !errors.As(err, &one) || one.Line != 1 {
		t.Errorf("the first error is not found in them: %v", one)
	}
}

func TestSourceLine(t *testing.T) {
	t.Parallel()
	src := "providers: {ollama: {models: [" + strings.Repeat("model, ", 100) + "], typo: 1, headers: {}}}\n"
	_, _, err := parseText(src)
	var all Errors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	last := all[len(all)-1]
	lines := strings.Split(last.Source(), "\n")
	caret := strings.Index(lines[1], "^")
	if len(lines[0]) > 200 || !strings.HasPrefix(string([]rune(lines[0])[caret:]), "typo") {
		t.Errorf("the caret is not below the key:\n%s", last.Source())
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		network, address string
		local            bool
	}{
		"127.0.0.1:20128": {"tcp", "127.0.0.1:20128", true}, "127.8.9.1:1": {"tcp", "127.8.9.1:1", true}, "[::1]:1": {"tcp", "[::1]:1", true},
		"localhost:0": {"tcp", "localhost:0", true}, "LOCALHOST.:1": {"tcp", "LOCALHOST.:1", true}, "[::ffff:127.0.0.1]:1": {"tcp", "[::ffff:127.0.0.1]:1", true},
		"[::1%lo]:1": {"tcp", "[::1%lo]:1", true},
		":8080":      {"tcp", ":8080", false}, "0.0.0.0:1": {"tcp", "0.0.0.0:1", false}, "[::]:1": {"tcp", "[::]:1", false}, "10.0.0.1:1": {"tcp", "10.0.0.1:1", false},
		"gateway:1": {"tcp", "gateway:1", false}, "localhost.example:1": {"tcp", "localhost.example:1", false}, "127.0.0.1.example:1": {"tcp", "127.0.0.1.example:1", false},
		"unix:/run/o.sock": {"unix", "/run/o.sock", true}, "unix:o.sock": {"unix", filepath.Join("dir", "o.sock"), true},
	} {
		a, err := parseAddress(text, "dir")
		if err != nil || a.Network != want.network || a.Address != want.address || a.Local() != want.local {
			t.Errorf("%s: %+v local %v, %v; want %+v", text, a, a.Local(), err, want)
		}
	}
	for _, bad := range []string{"", "20128", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:01", "::1:1", "http://127.0.0.1:1", "unix:", "a b:1"} {
		if a, err := parseAddress(bad, ""); err == nil {
			t.Errorf("%q was read as %+v", bad, a)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain": "plain", "${FIVE}": "5", "a${FIVE}b${FIVE}": "a5b5", "${NONE:-x}": "x", "${EMPTY:-x}": "x", "${NONE:-}": "", "${EMPTY}": "", "${FIVE:-x}": "5",
		"$${FIVE}": "${FIVE}", "$FIVE": "$FIVE", "a$": "a$", "$$": "$$", "$${": "${", "${NONE:-a:-b}": "a:-b", "$${${FIVE}": "${5",
	} {
		if got, err := expand(text, variables); err != nil || got.text != want {
			t.Errorf("%s: %q, %v; want %q", text, got.text, err, want)
		}
	}
	for _, bad := range []string{"${NONE}", "${FIVE", "${}", "${A B}", "${1A}", "${-x}", "${FIVE:x}"} {
		if got, err := expand(bad, variables); err == nil {
			t.Errorf("%s: %q, want an error", bad, got.text)
		}
	}
	// What a variable brings is not expanded again.
	got, err := expand("${A}", func(string) (string, bool) { return "${B}", true })
	if err != nil || got.text != "${B}" {
		t.Errorf("%q, %v", got.text, err)
	}
}

func TestSizesAndShares(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"1": 1, "64MiB": 64 << 20, "1.5KiB": 1536, "10 MB": 10e6, "2kB": 2000, "2KB": 2000, "1GiB": 1 << 30, "7B": 7, "64mb": -1, "": -1, "MiB": -1, "-1": -1, "1e3": -1, "2000GiB": -1, "1 2": -1} {
		if got, ok := parseSize(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d %v, want %d", text, got, ok, want)
		}
	}
	for text, want := range map[string]float64{"0": 0, "0.25": 0.25, ".5": 0.5, "10%": 0.1, "100%": 1, "": -1, "%": -1, "a": -1, "-1": -1, "NaN": -1} {
		if got, ok := parseShare(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
providers:
  openai:
    headers: {authorization: Bearer other, X-Team: search}
    connections: [{id: a, api_key: sk-1}]
  anthropic:
    connections: [{id: a, api_key_file: key.txt}, {id: eu, api_key: sk-3, base_url: "https://eu.example/v1/"}]
  azure-openai:
    base_url: https://acme.example/openai/v1
    connections: [{id: a, api_key: sk-2}]
  ollama: {}
  acme:
    rate_limit_scope: model
    connections: [{id: a, base_url: http://127.0.0.1:1/v1}, {id: b, base_url: http://127.0.0.1:2/v1}]
`)
	headers := func(id, connection string) map[string][]string {
		h := map[string][]string{}
		c.Provider(id).Connection(connection).Authorize(h, catalog.OpenAI)
		return h
	}
	for _, test := range []struct {
		id, connection string
		want           map[string][]string
	}{
		{"openai", "a", map[string][]string{"Authorization": {"Bearer other"}, "X-Team": {"search"}}},
		{"anthropic", "a", map[string][]string{"Authorization": {"Bearer sk-file-00000001"}}}, // its OpenAI endpoint takes it so
		{"azure-openai", "a", map[string][]string{"Api-Key": {"sk-2"}}},
		{"ollama", "main", map[string][]string{}},
		{"acme", "b", map[string][]string{}},
	} {
		if diff := cmp.Diff(test.want, headers(test.id, test.connection)); diff != "" {
			t.Errorf("%s/%s (-want +got):\n%s", test.id, test.connection, diff)
		}
	}
	for id, want := range map[string]string{"openai/a": "https://api.openai.com/v1", "anthropic/eu": "https://eu.example/v1", "azure-openai/a": "https://acme.example/openai/v1", "acme/b": "http://127.0.0.1:2/v1"} {
		p, conn, _ := strings.Cut(id, "/")
		if got := c.Provider(p).Connection(conn).BaseURL(catalog.OpenAI); got != want {
			t.Errorf("%s is called at %s, want %s", id, got, want)
		}
	}
	if conn := c.Provider("anthropic").Connection("eu"); !conn.OwnDomain() || c.Provider("anthropic").Connection("a").OwnDomain() || conn.Provider().ID != "anthropic" || conn.BaseURL(catalog.Gemini) != "" {
		t.Error("a connection with its own address is its own failure domain, and no other is")
	}
	for id, want := range map[string]resilience.Scope{"acme": resilience.ScopeModel, "azure-openai": resilience.ScopeModel, "openai": resilience.ScopeConnection, "anthropic": resilience.ScopeConnection, "ollama": resilience.ScopeConnection} {
		if got := c.Provider(id).RateLimitScope; got != want {
			t.Errorf("an unexplained 429 of %s is of scope %v, want %v: what the file says, else what is known of the name", id, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
providers: {ollama: {}}
error_rules:
  - {status: 429, scope: model, kind: rate_limit, cooldown: 30s, backoff: false}
  - {id: mine, provider: [ollama], dialect: openai, status: [403, 5xx], code: a*, text: [x, y], not: z, header: "x-a: b", scope: connection, quarantine: true}
`)
	ignore := cmp.FilterPath(func(p cmp.Path) bool { s := p.Last().String(); return s == ".at" || s == ".fields" }, cmp.Ignore())
	want := []ErrorRule{
		{Index: 0, Status: []string{"429"}, Scope: resilience.ScopeModel, Kind: resilience.KindRateLimit, Cooldown: 30 * time.Second, Constant: true},
		{Index: 1, ID: "mine", Providers: []string{"ollama"}, Dialects: []string{"openai"}, Status: []string{"403", "5xx"}, Codes: []string{"a*"}, Texts: []string{"x", "y"}, Not: []string{"z"}, Header: "x-a: b", Scope: resilience.ScopeConnection, Quarantine: true},
	}
	if diff := cmp.Diff(want, c.ErrorRules, ignore, cmp.AllowUnexported(ErrorRule{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if e := c.ErrorRules[1].Errorf("not", "it excludes the rule's own text"); e.Line != 5 || e.Path != "error_rules[1].not" || !strings.Contains(e.Error(), "| ") {
		t.Errorf("an error about a key of a rule is %v", e)
	}
	if e := c.ErrorRules[1].Errorf("certain", "x"); e.Line != 5 || e.Column != 5 || e.Path != "error_rules[1]" {
		t.Errorf("an error about a key that is not written is %v", e)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("key", "sk-from-a-file\n")
	path := write("omniroute.yaml", "store: sqlite:state/o.db\nproviders: {openai: {connections: [{id: a, api_key_file: key}]}}\n")
	c, _, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Provider("openai").Connection("a").Key.Reveal() != "sk-from-a-file" || c.Store.Path != filepath.Join(dir, "state", "o.db") || c.File != path {
		t.Errorf("%+v", c)
	}
	if _, _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "omniroute init") {
		t.Errorf("a missing file: %v", err)
	}
	if _, _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, _, err := Load(write("huge.yaml", strings.Repeat("# x\n", 1<<19))); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("a huge file: %v", err)
	}
	if _, _, err := Load(write("folder.yaml", "providers: {openai: {connections: [{id: a, api_key_file: .}]}}\n")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder as key file: %v", err)
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	pem, err := os.ReadFile("testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := parse("omniroute.yaml", []byte("providers: {ollama: {ca_file: ca.pem, proxy: \"socks5://127.0.0.1:1080\"}}\n"), variables, func(string) ([]byte, error) { return pem, nil })
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Provider("ollama"); string(p.CACertificates) != string(pem) || p.Proxy().String() != "socks5://127.0.0.1:1080" {
		t.Errorf("%+v", p)
	}
}

// TestVariablesOfSecretsInWrongPlaces takes a key's variable for everything.
func TestVariablesOfSecretsInWrongPlaces(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"listen: X", "store: X", "max_body: X", "shutdown_grace: X", "providers: {openai: {connections: [{id: X/, api_key: a}]}}",
		"providers: {openai: {connections: [{id: a, api_key_file: X}]}}", "providers: {openai: {connections: X}}", "providers: {acme: {base_url: X, ca_file: X, proxy: X, rate_limit_scope: X, models: [X, X], headers: X}}",
		"providers: {acme: {base_url: X/chat/completions}}", "combos: {c: {targets: [X, X/y], strategy: X, max_attempts: X}}", "error_rules: [{provider: X, status: X, scope: X, kind: X, id: X}, {id: X}]", "typo: X",
		"resilience: {breaker: {degraded_threshold: X, max_backoff_multiplier: X, cooldown_by_kind: {rate_limit: X}}, cooldown: {jitter: X}}",
	} {
		for _, value := range []string{`"${OPENAI_API_KEY}"`, "sk-literal-0001"} {
			if value != `"${OPENAI_API_KEY}"` && !strings.Contains(src, "api_key_file") {
				continue // where text is expected it is shown
			}
			_, warnings, err := parseText(strings.ReplaceAll(strings.ReplaceAll(src, "X/", strings.Trim(value, "\"")+"/"), "X", value) + "\n")
			if err == nil {
				t.Errorf("%s is accepted", src)
			}
			if text := fmt.Sprint(err, warnings); strings.Contains(text, "sk-live-openai") || strings.Contains(text, "literal") {
				t.Errorf("%s shows the secret:\n%s", src, text)
			}
		}
	}
}

// FuzzParse looks for panics, errors without a place, and secrets of the environment in a text.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/full.yaml", "testdata/all-keys.yaml", "testdata/example.yaml"} {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	for _, src := range []string{secretFile, routes, "", "a", "- a", "a: &a [*a]", "<<: {a: b}", "? [a]\n: b", "!!x a", "{a: b", "\"", "a: |\n  b\n", "a:\n\tb", "---\na\n---\nb", "%YAML 1.2\n---\na: b", "*a", "&a", "a: ${FIVE", "{a, b: {}}"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		c, warnings, err := parseText(src)
		if (c == nil) != (err != nil) {
			t.Fatalf("a snapshot %v with the error %v", c, err)
		}
		text := fmt.Sprint(warnings)
		if err != nil {
			var all Errors
			if !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("%T %v is no Errors", err, err)
			}
			lines := strings.Count(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src), "\n") + 1
			for _, e := range all {
				whole := e.Line == 0 && (strings.Contains(e.Message, "file is"))
				if !whole && (e.Line < 1 || e.Line > lines || e.Column < 1) || e.Message == "" {
					t.Errorf("an error without a place: %+v", e)
				}
			}
			text += err.Error()
		} else {
			for _, p := range c.Providers {
				if err := p.Policy.Validate(); err != nil {
					t.Errorf("%s: %v", p.ID, err)
				}
			}
			if !c.Listen.Local() && (len(c.ClientKeys) == 0 || c.AdminToken.Empty()) {
				t.Error("other machines can come in without a key")
			}
			_, _ = c.Resolve("gpt-5.2")
		}
		for _, secret := range []string{"sk-live-openai-0001", "ck-live-client-01", "at-live-admin-0001"} {
			if strings.Contains(text, secret) && !strings.Contains(src, secret) {
				t.Errorf("a secret is shown: %s", text)
			}
		}
	})
}
