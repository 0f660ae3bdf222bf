package server

import (
	"bytes"
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
// what names it in the log.
func watch(what, path string, last []byte, log *slog.Logger, changed func()) (*watcher, error) {
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
		names, missing := namesOf(path), false
		quiet := time.NewTimer(settle) // it may have changed before the watch began
		defer quiet.Stop()
		for {
			select {
			case event, ok := <-fs.Events:
				if !ok {
					return
				}
				if concerns(event.Name, names) {
					quiet.Reset(settle)
				}
			case err, ok := <-fs.Errors:
				if !ok {
					return
				}
				log.Warn("the "+what+" file may have changed unseen; send SIGHUP if it has", "error", err)
			case <-quiet.C:
				names = namesOf(path) // a link may lead elsewhere now
				sum, err := sumOf(path)
				switch {
				case err != nil:
					// It may come back; nothing can be loaded meanwhile.
					if !missing {
						log.Warn("the "+what+" file is gone or cannot be read; the old "+what+" stays in force", "error", err)
					}
				case !bytes.Equal(sum, last):
					last = sum
					changed()
				}
				missing = err != nil
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

// namesOf lists what in the file's folder decides about its content: the file and, where it is a link,
// what the links go through there, such as the ..data of a mounted Kubernetes volume.
func namesOf(path string) []string {
	const deepest = 8 // links may form a circle
	folder, at := filepath.Split(path)
	names := []string{at}
	for range deepest {
		to, err := os.Readlink(filepath.Join(folder, at))
		if err != nil || filepath.IsAbs(to) {
			break
		}
		at, _, _ = strings.Cut(filepath.ToSlash(filepath.Clean(to)), "/")
		if at == ".." {
			break
		}
		names = append(names, at)
	}
	return names
}

// concerns reports whether an event is about one of the names. Most are not: the store lies in the
// same folder and is written all the time.
func concerns(event string, names []string) bool {
	name := filepath.Base(event)
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// sumOf identifies a file's content.
func sumOf(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return sum[:], nil
}
