package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"omniroute/internal/config"
)

// atStop is what the program may need after shutdown_grace: to cut what is left, to write the state, and to deliver
// alerts.
const atStop = 11 * time.Second

// sample is the packaged configuration, with what the container's environment adds.
func sample(t *testing.T, env func(string) (string, bool)) (*config.Config, []config.Warning) {
	t.Helper()
	c, warnings, err := config.Parse("omniroute.yaml", []byte(read(t, "packaging/omniroute.yaml")), env)
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}

func TestSampleConfiguration(t *testing.T) {
	t.Parallel()
	c, warnings := sample(t, everySet)
	if len(warnings) > 0 {
		t.Errorf("with everything set: %v", warnings)
	}
	if c.Listen.Local() || len(c.ClientKeys) == 0 || c.AdminToken.Empty() {
		t.Errorf("in a container: listens on %s with %d client keys", c.Listen, len(c.ClientKeys))
	}
	// As under systemd: only what is needed is set.
	c, _ = sample(t, func(name string) (string, bool) {
		return "x", strings.HasPrefix(name, "OMNIROUTE_") && !strings.HasSuffix(name, "_LISTEN")
	})
	if !c.Listen.Local() {
		t.Errorf("without a word about it, it listens on %s", c.Listen)
	}
	if dir := filepath.Dir(c.Store.Path); dir != "/var/lib/omniroute" {
		t.Errorf("the store lies in %s", dir)
	}
}

// TestClusterFiles compares the configuration of compose-cluster.yaml with the image's: only the
// store differs, and it is the server that the composition starts.
func TestClusterFiles(t *testing.T) {
	t.Parallel()
	image := strings.Split(read(t, "packaging/omniroute.yaml"), "\n")
	cluster := strings.Split(read(t, "packaging/omniroute-cluster.yaml"), "\n")
	var differ []string
	for i := range min(len(image), len(cluster)) {
		if image[i] != cluster[i] && !strings.HasPrefix(image[i], "#") {
			differ = append(differ, cluster[i])
		}
	}
	if len(image) != len(cluster) || len(differ) != 1 || differ[0] != "store: redis://valkey:6379/0" {
		t.Errorf("the two configurations differ in %q", differ)
	}
	if text := read(t, "packaging/compose-cluster.yaml"); !strings.Contains(text, "./omniroute-cluster.yaml:/etc/omniroute/omniroute.yaml:ro") || !strings.Contains(text, "\n  valkey:\n") {
		t.Error("compose-cluster.yaml starts something else")
	}
	if _, _, err := config.Parse("omniroute.yaml", []byte(strings.Join(cluster, "\n")), everySet); err != nil {
		t.Error(err)
	}
}

// TestEnvironmentExample compares the variables of the configuration with those to fill in.
func TestEnvironmentExample(t *testing.T) {
	t.Parallel()
	want := map[string]bool{}
	for _, m := range regexp.MustCompile(`"\$\{(\w+)`).FindAllStringSubmatch(read(t, "packaging/omniroute.yaml"), -1) {
		want[m[1]] = m[1] != "OMNIROUTE_LISTEN" && m[1] != "OMNIROUTE_METRICS_LISTEN" // the image and compose.yaml set these
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(read(t, "packaging/environment.example"), -1) {
		if !want[m[1]] {
			t.Errorf("environment.example has %s, which the configuration does not use", m[1])
		}
		if m[2] != "" {
			t.Errorf("environment.example has a value for %s", m[1])
		}
		delete(want, m[1])
	}
	for name, needed := range want {
		if needed {
			t.Errorf("environment.example lacks %s", name)
		}
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]struct {
			Build          struct{ Context, Dockerfile string }
			Grace          string `yaml:"stop_grace_period"`
			Ports, Volumes []string
			Environment    map[string]string
			CapDrop        []string `yaml:"cap_drop"`
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal([]byte(read(t, "packaging/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	s, ok := file.Services["omniroute"]
	if !ok {
		t.Fatalf("the services are %v", file.Services)
	}
	if _, err := os.Stat(filepath.Join(root, "packaging", s.Build.Context, s.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	longEnough(t, "compose.yaml", s.Grace)
	for name, s := range file.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: the port %s is open to other machines", name, p)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := file.Volumes[from]
			if _, err := os.Stat(filepath.Join(root, "packaging", from)); err != nil && !named {
				t.Errorf("%s: nothing is at %s", name, from)
			}
		}
		if !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s keeps capabilities", name)
		}
	}
	// What Prometheus asks is where the gateway shows its metrics.
	_, port, _ := strings.Cut(s.Environment["OMNIROUTE_METRICS_LISTEN"], ":")
	if want := `["omniroute:` + port + `"]`; !strings.Contains(read(t, "packaging/prometheus/prometheus.yaml"), want) {
		t.Errorf("Prometheus does not ask %s", want)
	}
}

// TestUnitIsHardened reads the unit as systemd does: what a gateway that reads its configuration, writes its
// state and speaks to the network can do without is taken from it.
func TestUnitIsHardened(t *testing.T) {
	t.Parallel()
	unit := map[string][]string{}
	section := ""
	for line := range strings.Lines(read(t, "packaging/omniroute.service")) {
		line = strings.TrimSpace(line)
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = line
		case !ok:
			t.Errorf("%q is no setting", line)
		case section == "[Service]":
			unit[key] = append(unit[key], value)
		}
	}
	for key, want := range map[string]string{
		"DynamicUser": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes",
		"PrivateUsers": "yes", "PrivateIPC": "yes", "ProtectClock": "yes", "ProtectControlGroups": "yes", "ProtectHostname": "yes", "ProtectKernelLogs": "yes",
		"ProtectKernelModules": "yes", "ProtectKernelTunables": "yes", "ProtectProc": "invisible", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "",
		"AmbientCapabilities": "", "LockPersonality": "yes", "MemoryDenyWriteExecute": "yes", "RestrictNamespaces": "yes", "RestrictRealtime": "yes",
		"RestrictSUIDSGID": "yes", "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "SystemCallArchitectures": "native",
		"DevicePolicy": "closed", "KeyringMode": "private", "RemoveIPC": "yes", "UMask": "0077", "LimitCORE": "0",
	} {
		if got, ok := unit[key]; !ok || !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := unit["SystemCallFilter"]; !slices.Equal(got, []string{"@system-service", "~@privileged @resources"}) {
		t.Errorf("the system calls are %q", got)
	}
	for _, key := range []string{"User", "Group", "ReadWritePaths", "BindPaths", "SupplementaryGroups"} {
		if got, ok := unit[key]; ok {
			t.Errorf("%s=%s opens what was closed", key, got)
		}
	}
}

func TestUnitStopsLateEnough(t *testing.T) {
	t.Parallel()
	m := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindStringSubmatch(read(t, "packaging/omniroute.service"))
	if m == nil {
		t.Fatal("the unit has no TimeoutStopSec")
	}
	longEnough(t, "omniroute.service", m[1])
}

func longEnough(t *testing.T, what, text string) {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if c, _ := sample(t, everySet); d < c.ShutdownGrace+atStop {
		t.Errorf("%s kills the program after %s, though it may take %s and %s to stop", what, d, c.ShutdownGrace, atStop)
	}
}

// TestContainerfile: what it copies is there, and it builds with the Go that go.mod asks for.
func TestContainerfile(t *testing.T) {
	t.Parallel()
	text := read(t, "packaging/Containerfile")
	needs := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	has := regexp.MustCompile(`library/golang:(\d+\.\d+) `).FindStringSubmatch(text)
	if needs == nil || has == nil || needs[1] != has[1] {
		t.Errorf("go.mod needs Go %v, the image builds with %v", needs, has)
	}
	files := regexp.MustCompile(`(?:go\.mod go\.sum|\bpackaging/\S+\.yaml|\./cmd/\S+)`).FindAllString(text, -1)
	if len(files) < 4 {
		t.Errorf("found only %v", files)
	}
	for _, names := range files {
		for _, name := range strings.Fields(names) {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Error(err)
			}
		}
	}
}
