// Package proc starts processes on chosen cores and reads what they use, from the kernel's own
// books. It works on Linux only; elsewhere its functions return ErrUnsupported.
package proc
