package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

func TestSecretIsNeverShown(t *testing.T) {
	t.Parallel()
	const value = "sk-live-0123456789"
	type holder struct {
		Name  string
		Key   Secret
		Keys  []Secret
		ByID  map[string]Secret
		Inner *holder
		inner Secret
	}
	s := NewSecret(value)
	h := holder{"n", s, []Secret{s}, map[string]Secret{"a": s}, &holder{Key: s}, s}
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%p", "%w", "%10.3s"} {
		for _, v := range []any{s, &s, h, &h, []any{s}} {
			texts = append(texts, fmt.Sprintf(verb, v))
		}
	}
	texts = append(texts, fmt.Errorf("with %v", s).Error(), s.String(), s.GoString())
	asJSON, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("m", "key", s, "pointer", &s, "holder", h, slog.Group("g", "key", s))
	}
	texts = append(texts, string(asJSON), string(asYAML), log.String())
	for _, text := range texts {
		for _, form := range []string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value), "0123456789"} {
			if strings.Contains(text, form) {
				t.Errorf("the value is shown: %s", text)
			}
		}
	}
	if !strings.Contains(string(asJSON), redacted) || s.String() != redacted || fmt.Sprint(s) != redacted {
		t.Errorf("a secret that is there cannot be told from one that is absent: %s", asJSON)
	}
	if got := fmt.Sprintf("%v%+v%s", Secret{}, Secret{}, Secret{}); got != "" {
		t.Errorf("an absent secret is shown as %q", got)
	}
	if s.Reveal() != value || !s.Equal(NewSecret(value)) || s.Equal(NewSecret(value+"x")) || !s.Matches(value) || s.Matches("") || !(Secret{}).Equal(NewSecret("")) {
		t.Error("a secret does not equal itself")
	}
}

func TestClientKey(t *testing.T) {
	t.Parallel()
	plain, err := ParseClientKey("omr-0123456789")
	if err != nil {
		t.Fatal(err)
	}
	hashed, err := ParseClientKey(plain.Hashed())
	if err != nil || hashed != plain || !hashed.Matches("omr-0123456789") || hashed.Matches(plain.Hashed()) || hashed.Matches("") {
		t.Errorf("the hashed form is another key: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v %x", plain, plain, plain, plain); strings.Trim(strings.ReplaceAll(text, redacted, ""), " ") != "" {
		t.Errorf("the hash is shown: %s", text)
	}
	for _, bad := range []string{"", "sha256:", "sha256:12", "sha256:" + strings.Repeat("g", 64), plain.Hashed() + "00", "sha256: " + plain.Hashed()[7:]} {
		if _, err := ParseClientKey(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		} else if bad != "" && strings.Contains(err.Error(), bad[7:]) && len(bad) > 8 {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

// secretFile has a secret in every place that takes one, in several forms of YAML.
const secretFile = `client_keys: ["SECRET-one-1111", 'SECRET-two-2222', SECRET-three-3333]
admin_token: "SECRET-four-4444" # not SECRET-five-5555
providers:
  openai:
    connections:
      - {id: main, api_key: SECRET-six-6666}
      - id: spare
        api_key: >-
          SECRET-seven-7777
      - id: third
        api_key: ${MISSING:-SECRET-eight-8888}
      - id: fourth
        api_key: ${FROM_ENVIRONMENT}
      - {id: fifth, api_key_file: key.txt}
  acme:
    base_url: https://llm.acme.example/v1
    headers: {x-team: SECRET-nine-9999, authorization: "Bearer SECRET-ten-0000"}
    proxy: http://user:SECRET-eleven-1@proxy.example:8080
    connections: &list
      - {id: k1, api_key: SECRET-twelve-2}
  other:
    base_url: https://llm.other.example/v1
    connections: *list
combos:
  coding:
    targets: [openai/gpt-5.2, acme/acme-large]
relay: {max_attempts: 6}
error_rules:
  - {provider: acme, status: 403, text: "credit pool empty", scope: connection}
`

func parseSecretFile(src string) (*Config, []Warning, error) {
	env := func(name string) (string, bool) { return "SECRET-thirteen-3", name == "FROM_ENVIRONMENT" }
	return parse("omniroute.yaml", []byte(src), env, func(path string) ([]byte, error) {
		if path != "key.txt" {
			return nil, os.ErrNotExist
		}
		return []byte("SECRET-fourteen-4\n"), nil
	})
}

func TestConfigIsSafeToPrint(t *testing.T) {
	t.Parallel()
	c, _, err := parseSecretFile(secretFile)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{fmt.Sprintf("%v %+v %#v", c, c, c)}
	for _, v := range []any{c, c.Providers, c.Combos, c.ErrorRules, c.ClientKeys} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, p := range c.Providers {
		texts = append(texts, fmt.Sprintf("%v %+v %#v", p, *p, p))
		for _, conn := range p.Connections {
			texts = append(texts, fmt.Sprintf("%v %+v %#v", conn, *conn, conn))
		}
	}
	for _, text := range texts {
		if strings.Contains(text, "SECRET") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	if got := c.Provider("acme").Proxy(); got == nil || got.Host != "proxy.example:8080" {
		t.Errorf("proxy %v", got)
	}
}

// TestErrorsShowNoSecret breaks the file in ways in which people break files, and reads what is reported.
// The secrets themselves stay whole: half a secret is not known to be one.
func TestErrorsShowNoSecret(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSuffix(secretFile, "\n"), "\n")
	rapid.Check(t, func(t *rapid.T) {
		broken := slices.Clone(lines)
		for range rapid.IntRange(1, 4).Draw(t, "faults") {
			i := rapid.IntRange(0, len(broken)-1).Draw(t, "line")
			line := broken[i]
			// Places that are not within a secret.
			var places []int
			for at := 0; at <= len(line); at++ {
				if from := strings.LastIndex(line[:at], "SECRET"); from >= 0 && !strings.ContainsAny(line[from:at], " ,\"'}@]") {
					continue
				}
				if strings.HasPrefix(line[at:], "ECRET") {
					continue
				}
				places = append(places, at)
			}
			at := rapid.SampledFrom(places).Draw(t, "place")
			switch rapid.IntRange(0, 6).Draw(t, "fault") {
			case 0:
				if at < len(line) && line[at] != 'S' {
					broken[i] = line[:at] + line[at+1:]
				}
			case 1:
				broken[i] = line[:at] + rapid.SampledFrom([]string{":", " ", "\"", "'", "{", "}", "[", "]", ",", "#", "\t", "-", "&a ", "*a ", "!x ", "|", ">", "%", "? ", "x", "${", "<<: ", "\n", ": "}).Draw(t, "insert") + line[at:]
			case 2:
				broken[i] = "  " + line
			case 3:
				broken[i] = strings.TrimPrefix(line, "  ")
			case 4:
				broken = slices.Insert(broken, i, line)
			case 5:
				broken = slices.Delete(broken, i, i+1)
			case 6:
				j := rapid.IntRange(0, len(broken)-1).Draw(t, "other")
				broken[i], broken[j] = broken[j], broken[i]
			}
			if len(broken) == 0 {
				return
			}
		}
		src := strings.Join(broken, "\n")
		_, warnings, err := parseSecretFile(src)
		text := fmt.Sprint(err, warnings)
		if strings.Contains(text, "SECRET") || strings.Contains(text, "1111") || strings.Contains(text, "8888") {
			t.Fatalf("a secret is shown of\n%s\n\n%s", src, text)
		}
	})
}
