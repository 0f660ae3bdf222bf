package suite

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine holds what a reader must know to compare numbers. It names no machine.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	// Load is the load average before and after the run: how busy others kept the machine.
	Load [2]string `json:"load"`
}

func machine() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if v := field(text, "model name"); v != "" {
			m.CPU = v
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int64
		if _, err := fmt.Sscan(field(text, "MemTotal"), &kb); err == nil {
			m.Memory = fmt.Sprintf("%.0f GiB", float64(kb)/(1<<20))
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		// Only the version: what follows is often a vendor's or a machine's name.
		version, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
		m.Kernel = runtime.GOOS + " " + version
	}
	m.Load[0] = loadAverage()
	return m
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// field returns the value of "name : value" in one of /proc's files.
func field(text []byte, name string) string {
	for line := range bytes.Lines(text) {
		key, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String is one line for the report.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, %s; load average %s before and %s after the run.",
		m.CPU, m.Cores, m.Memory, m.Kernel, m.Go, m.Load[0], m.Load[1])
}
