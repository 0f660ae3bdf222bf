package simulate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every mistake is shown at its line and column, that of the configuration in the file too.
func TestMistakesHaveTheirPlace(t *testing.T) {
	t.Parallel()
	const conf = `
config: |

  providers:
    p: {dialect: openai, base_url: "https://p.example/v1", connections: [{id: a, api_key: sk-a-real-one}]}
`
	for src, want := range map[string]string{
		"":                    "t.yaml: there is nothing in it",
		"# nothing\n":         "t.yaml: there is nothing in it",
		"length: [1m\n":       "t.yaml:1:",
		"length: soon" + conf: `t.yaml:1:9: "soon" is no duration`,
		"length: 5" + conf:    `t.yaml:1:9: "5" is no duration`,
		"length: -5s" + conf:  `t.yaml:1:9: "-5s" is no duration`,
		"nodez: 1" + conf:     `t.yaml:1:1: unknown field "nodez"`,
		"seed: -1" + conf:     `t.yaml:1:7: "-1" is not a whole number from 0 on`,
		"nodes: 1.5" + conf:   `t.yaml:1:8: "1.5" is not a whole number`,
		"nodes: some" + conf:  `t.yaml:1:8: "some" is not a whole number`,
		"seed: one" + conf:    `t.yaml:1:7: "one" is not a whole number from 0 on`,
		"shared: some" + conf: `t.yaml:1:9: "some" is not true or false`,
		"outage\n":            "t.yaml:1:1: this is not what belongs here: keys with values",
		"traffic: {a: b}":     "t.yaml:1:10: this is not what belongs here: a list",
		"length: 1m\ntraffic: [{model: p/m, rate: 5/s}]" + conf:                                                `t.yaml:2:30: "5/s" is not a number`,
		"length: 2m\ntraffic: [{model: p/m, rate: 5}]\nupstreams: {p: {events: [{from: 5m, to: 6m}]}}" + conf:  "it begins at 5m, and the run ends at 2m",
		"length: 1m" + conf + "---\nlength: 2m\n":                                                              "t.yaml:7:1: a second document begins here",
		"length: 1m\nconfig: |\n\n  providers:\n    p: {bogus: 1}\n":                                           "t.yaml:5:9: providers.p: unknown key \"bogus\"",
		"length: 1m\ntraffic:\n  - model: p/m\n    rate: -1" + conf:                                            "t.yaml:4:11: traffic[0].rate: it is how many",
		"length: 1m\ntraffic:\n  - model: p/m" + conf:                                                          "t.yaml:3:5: traffic[0].rate: it is how many",
		"length: 1m\ntraffic:\n  - {model: p/m, rate: 1, prompt_tokens: -4}" + conf:                            "t.yaml:3:42: -4 is not above 0",
		"length: 1m\ntraffic:\n  - {model: p/m, rate: 1, prompt_tokens: many}" + conf:                          `t.yaml:3:42: "many" is neither a number`,
		"length: 1m\ntraffic:\n  - {model: p/m, rate: 1, patience: {median: 1s, sprd: 1}}" + conf:              `t.yaml:3:50: unknown field "sprd"`,
		"length: 1m\ntraffic:\n  - {model: p/m, rate: 1, patience: {median: 1s, spread: .nan}}" + conf:         `t.yaml:3:58: ".nan" is no spread`,
		"length: 1m\ntraffic:\n  - {model: p/m, rate: 1}\nupstreams: {p: {events: [{slow: 0.5}]}}" + conf:      "t.yaml:4:33: upstreams.p.events[0].slow: ",
		"length: 1m\ntraffic:\n  - {model: p/m, rate: 1}\nupstreams: {p: {limits: [{requests: 1, every: 0}]}}": "", // completed below
	} {
		if want == "" {
			src, want = src+conf, "t.yaml:4:47: upstreams.p.limits[0].every: "
		}
		_, err := Parse("t.yaml", []byte(src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %q", src, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "sk-a-real-one") {
			t.Errorf("a key is shown: %v", err)
		}
	}
}

// Numbers that are none, and such that no run comes to an end with, are refused.
func TestNumbersThatAreNone(t *testing.T) {
	t.Parallel()
	good := "config: |" + two + "length: 1m\ntraffic: [{model: chat, rate: 1, stream: 1, leave: 0}]\nupstreams: {primary: {events: [{share: 1, slow: 2}]}}\n"
	if _, err := Parse("t.yaml", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for old, bad := range map[string][]string{
		"rate: 1":    {".nan", ".inf", "-.inf", "1000001", "0", "-1"},
		"stream: 1":  {".nan", "-0.1", "1.1"},
		"leave: 0":   {".nan", "-0.1", "1.1"},
		"share: 1":   {".nan", "0", "1.1"},
		"slow: 2":    {".nan", ".inf", "1"},
		"length: 1m": {"0s", "745h"},
	} {
		key, _, _ := strings.Cut(old, ":")
		for _, v := range bad {
			if _, err := Parse("t.yaml", []byte(strings.Replace(good, old, key+": "+v, 1))); err == nil || !strings.HasPrefix(err.Error(), "t.yaml:") {
				t.Errorf("%s: %s: %v", key, v, err)
			}
		}
	}
	r := play(t, "\nlength: 744h\ntraffic: [{model: chat, rate: 1e-12}]\n")
	if r.Requests != 0 {
		t.Errorf("%d requests in a month at one in 30,000 years", r.Requests)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "No request came") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// The names of files in the configuration are taken from beside the schedule, whatever the indentation.
func TestConfigurationInPlace(t *testing.T) {
	t.Parallel()
	for _, indent := range []string{" ", "        "} {
		text := strings.ReplaceAll(strings.TrimPrefix(two, "\n"), "\n  ", "\n"+indent)
		text = indent + strings.TrimPrefix(text, "  ")
		src := "length: 1m\nconfig: |-\n" + text + "\n\ntraffic: [{model: chat, rate: 1}]\n"
		path := filepath.Join(t.TempDir(), "t.yaml")
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Load(path)
		if err != nil {
			t.Fatalf("%s\n%v", src, err)
		}
		if len(f.cfg.Providers) != 2 {
			t.Errorf("%d providers, want both", len(f.cfg.Providers))
		}
	}
}
