package outcomes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/internal/telemetry"
)

const (
	// waiting is how many lines may wait for the disk; what comes beyond is left out and counted.
	waiting = 4096
	// flushEvery is how long a line may stay in memory.
	flushEvery = time.Second
)

// Writer appends lines to a file of bounded size: when the file has half of what is allowed it becomes
// NAME.1, in place of the one before, and a new one is begun. A request never waits for it. It is safe
// for concurrent use.
type Writer struct {
	path string
	half int64
	log  *slog.Logger

	lines chan Line
	done  chan struct{}
	once  sync.Once
	lost  atomic.Int64

	// The writing goroutine's.
	file   *os.File
	out    *bufio.Writer
	size   int64
	failed bool
}

// Open begins to append to a file that may grow to most bytes, the older half included.
func Open(path string, most int64, log *slog.Logger) (*Writer, error) {
	w := &Writer{path: path, half: max(most/2, 1), log: log, lines: make(chan Line, waiting), done: make(chan struct{})}
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("outcomes cannot be recorded: %w", err)
	}
	go w.run()
	return w, nil
}

func (w *Writer) open() error {
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w.file, w.out, w.size = f, bufio.NewWriter(f), info.Size()
	return nil
}

// Observe takes in a request that is over.
func (w *Writer) Observe(s telemetry.Story) {
	l, ok := Of(s)
	if !ok {
		return
	}
	select {
	case w.lines <- l:
	default:
		w.lost.Add(1)
	}
}

// Lost returns how many requests were not recorded, since the disk was too slow or refused them.
func (w *Writer) Lost() int64 { return w.lost.Load() }

// Close writes what waits and closes the file. Nothing may be observed after it.
func (w *Writer) Close() {
	w.once.Do(func() { close(w.lines) })
	<-w.done
}

func (w *Writer) run() {
	defer close(w.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case l, ok := <-w.lines:
			if !ok {
				w.flush()
				if w.file != nil {
					w.check(w.file.Close())
				}
				return
			}
			w.write(l)
		case <-tick.C:
			w.flush()
		}
	}
}

func (w *Writer) write(l Line) {
	if w.file == nil {
		if err := w.open(); !w.check(err) {
			w.lost.Add(1)
			return
		}
	}
	b, err := json.Marshal(l)
	if !w.check(err) {
		return
	}
	n, err := w.out.Write(append(b, '\n'))
	w.size += int64(n)
	if !w.check(err) {
		w.lost.Add(1)
		w.reopen()
		return
	}
	if w.size >= w.half {
		w.flush()
		w.reopen()
		if err := os.Rename(w.path, w.path+".1"); !errors.Is(err, fs.ErrNotExist) {
			w.check(err)
		}
	}
}

// reopen closes the file; the next line opens it again.
func (w *Writer) reopen() {
	if w.file != nil {
		w.check(w.file.Close())
	}
	w.file = nil
}

func (w *Writer) flush() {
	if w.file != nil && !w.check(w.out.Flush()) {
		w.reopen()
	}
}

// check says once that something has failed, and once that it is well again.
func (w *Writer) check(err error) bool {
	if err != nil && !w.failed {
		w.log.Warn("outcomes are not recorded for now", "file", w.path, "error", err)
	}
	if err == nil && w.failed {
		w.log.Info("outcomes are recorded again", "file", w.path, "lost", w.Lost())
	}
	w.failed = err != nil
	return err == nil
}

// Read returns what was recorded in a file, the older half included where it is there, oldest first. A last line
// that was cut off by a crash is left out.
func Read(path string) ([]Line, error) {
	var all []Line
	for _, name := range []string{path + ".1", path} {
		lines, err := readFile(name)
		if errors.Is(err, fs.ErrNotExist) && name != path {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
	}
	return all, nil
}

func readFile(name string) ([]Line, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []Line
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var l Line
		if err := json.Unmarshal(text, &l); err != nil || l.At.IsZero() {
			return nil, fmt.Errorf("%s:%d: this is no recorded outcome; name a file that `record` in a configuration has made", name, n)
		}
		lines = append(lines, l)
	}
}
