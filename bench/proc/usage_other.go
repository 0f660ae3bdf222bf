//go:build !linux

package proc

import (
	"os/exec"
	"runtime"
	"time"
)

// CPU returns ErrUnsupported.
func CPU(int) (time.Duration, error) { return 0, ErrUnsupported }

// Memory returns ErrUnsupported.
func Memory(int) (int64, error) { return 0, ErrUnsupported }

// Pin does nothing on no cores, else it returns ErrUnsupported.
func Pin(cores []int) error {
	if len(cores) > 0 {
		return ErrUnsupported
	}
	return nil
}

// Cores numbers the CPUs.
func Cores() []int {
	cores := make([]int, runtime.NumCPU())
	for i := range cores {
		cores[i] = i
	}
	return cores
}

func startOn(cmd *exec.Cmd, cores []int) error {
	if len(cores) > 0 {
		return ErrUnsupported
	}
	return cmd.Start()
}
