package server

import (
	"bytes"
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a folder must be quiet before the file is read: editors and deployments write
// in several steps.
const settle = 100 * time.Millisecond

// watcher calls changed when a file's content is another one. It watches the folder and compares
// the content, since files are replaced more often than written, sometimes by a link in their path.
type watcher struct {
	fs   *fsnotify.Watcher
	done sync.WaitGroup
}

// watch begins to watch. last identifies the content that is in force.
func watch(path string, last []byte, log *slog.Logger, changed func()) (*watcher, error) {
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := fs.Add(filepath.Dir(path)); err != nil {
		_ = fs.Close()
		return nil, err
	}
	w := &watcher{fs: fs}
	w.done.Go(func() {
		quiet := time.NewTimer(settle) // it may have changed before the watch began
		defer quiet.Stop()
		for {
			select {
			case _, ok := <-fs.Events:
				if !ok {
					return
				}
				quiet.Reset(settle)
			case err, ok := <-fs.Errors:
				if !ok {
					return
				}
				log.Warn("the configuration file may have changed unseen; send SIGHUP if it has", "error", err)
			case <-quiet.C:
				// A file that is gone may be about to come back; nothing can be loaded meanwhile.
				if sum := sumOf(path); sum != nil && !bytes.Equal(sum, last) {
					last = sum
					changed()
				}
			}
		}
	})
	return w, nil
}

// stop ends the watch, and a reload that it has begun.
func (w *watcher) stop() {
	_ = w.fs.Close()
	w.done.Wait()
}

// sumOf identifies a file's content; nil when it cannot be read.
func sumOf(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(data)
	return sum[:]
}
