package outcomes

import (
	"bufio"
	"bytes"
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
	if !endsLine(w.path, w.size) { // a crash or a full disk cut the last line off; the next must not go on in it
		n, _ := w.out.WriteString("\n")
		w.size += int64(n)
	}
	return nil
}

// endsLine reports whether a file of that size ends with a line's end, as an empty one does.
func endsLine(path string, size int64) bool {
	if size == 0 {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false // one that may be written and not read: an empty line too many harms nobody
	}
	defer f.Close()
	var last [1]byte
	_, err = f.ReadAt(last[:], size-1)
	return err == nil && last[0] == '\n'
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
	b, err := json.Marshal(l)
	if !w.check(err) {
		return
	}
	b = append(b, '\n')
	if !w.room(int64(len(b))) {
		w.lost.Add(1)
		return
	}
	n, err := w.out.Write(b)
	w.size += int64(n)
	if !w.check(err) {
		w.lost.Add(1)
		w.reopen()
	}
}

// room opens a file that so many bytes may go to. One that has its half becomes the older half; where
// that cannot be, nothing more is written.
func (w *Writer) room(more int64) bool {
	if w.file == nil && !w.check(w.open()) {
		return false
	}
	if w.size == 0 || w.size+more <= w.half {
		return true
	}
	w.flush()
	w.reopen()
	if err := os.Rename(w.path, w.path+".1"); !errors.Is(err, fs.ErrNotExist) && !w.check(err) {
		return false
	}
	return w.check(w.open())
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

// Recording is what was recorded.
type Recording struct {
	Lines []Line // oldest first
	// Unreadable is how many lines were left out: cut off by a crash, or with words that only another
	// version knows.
	Unreadable int
}

// Read returns what was recorded in a file, the older half included where it is there.
func Read(path string) (Recording, error) {
	var all Recording
	for _, name := range []string{path + ".1", path} {
		if err := all.read(name); err != nil && (name == path || !errors.Is(err, fs.ErrNotExist)) {
			return Recording{}, err
		}
	}
	if len(all.Lines) == 0 && all.Unreadable > 0 {
		return Recording{}, fmt.Errorf("%s holds no recorded outcome; name a file that `record` in a configuration has made", path)
	}
	return all, nil
}

func (r *Recording) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		text, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			var l Line
			if json.Unmarshal(text, &l) == nil && !l.At.IsZero() {
				r.Lines = append(r.Lines, l)
			} else {
				r.Unreadable++
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}
