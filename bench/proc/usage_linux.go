package proc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the CPU time that a process has used so far, in user and kernel mode, by its own
// clock: it is exact, unlike the ticks in /proc.
func CPU(pid int) (time.Duration, error) {
	// The kernel's MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
	const sched = 2
	clock := int32(^pid<<3 | sched)
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, fmt.Errorf("the CPU time of process %d cannot be read: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// Memory returns the resident memory of a process in bytes.
func Memory(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	return resident(text)
}

// resident reads VmRSS from a /proc/PID/status.
func resident(status []byte) (int64, error) {
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == "VmRSS:" && string(fields[2]) == "kB" {
			kb, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("no VmRSS in the process's status")
}

// Pin keeps this process on some cores; none means all that it had at first.
func Pin(cores []int) error {
	set := initial
	if len(cores) > 0 {
		set = setOf(cores)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
			return fmt.Errorf("pin to cores %v: %w", cores, err)
		}
	}
	return nil
}

var initial = func() (set unix.CPUSet) {
	_ = unix.SchedGetaffinity(0, &set)
	return set
}()

// Cores returns the CPUs that this process could use when it started.
func Cores() []int {
	var cores []int
	for i := range 1024 {
		if initial.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores
}

func setOf(cores []int) (set unix.CPUSet) {
	for _, c := range cores {
		set.Set(c)
	}
	return set
}

// startOn starts a command on some cores. A child inherits them from the thread that forks it, so
// that it finds itself there from its first instruction on.
func startOn(cmd *exec.Cmd, cores []int) error {
	set := initial
	if len(cores) > 0 {
		set = setOf(cores)
	}
	started := make(chan error)
	go func() {
		// The thread ends with this goroutine: nobody else meets its affinity.
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			started <- fmt.Errorf("cores %v: %w", cores, err)
			return
		}
		started <- cmd.Start()
	}()
	return <-started
}
