package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"omniroute/internal/config"
	"omniroute/resilience"
	"omniroute/store/sqlite"
)

// keptStore is a store that is closed when the gateway stops.
type keptStore interface {
	resilience.Store
	io.Closer
}

// openStore opens the store of a configuration. Nil means that the state is kept in memory only.
func openStore(ctx context.Context, cfg *config.Config, ownFolder bool, log *slog.Logger) (keptStore, error) {
	switch cfg.Store.Kind {
	case config.StoreSQLite:
		return openSQLite(ctx, cfg, ownFolder, log)
	case config.StoreRedis:
		return openRedis(ctx, cfg.Store.Redis, log)
	}
	return nil, nil
}

// auditor is what of a store keeps the trail of operators, nil where nothing does.
func auditor(s keptStore) resilience.Auditor {
	a, _ := s.(resilience.Auditor)
	return a
}

// openSQLite opens a file.
//
// A file that belongs to somebody else (another running gateway, a newer version, another program)
// is an error: going on without it would hide a mistake that only a person can undo. Any other
// trouble is the machine's, and the gateway starts without its memory: the store is tried again
// until it opens, and then has what has happened meanwhile.
func openSQLite(ctx context.Context, cfg *config.Config, ownFolder bool, log *slog.Logger) (keptStore, error) {
	if ownFolder {
		if err := os.MkdirAll(filepath.Dir(cfg.Store.Path), 0o700); err != nil {
			log.Warn("the folder of the store cannot be made", "error", err)
		}
	}
	s := &lateStore{path: cfg.Store.Path, log: log}
	_, err := s.store(ctx)
	switch {
	case err == nil:
	case errors.Is(err, sqlite.ErrInUse), errors.Is(err, sqlite.ErrNewer), errors.Is(err, sqlite.ErrForeign):
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		log.Warn("the store cannot be opened; starting without what was known, and trying again", "error", err)
	}
	return s, nil
}

// lateStore is a SQLite store that may come up later than the gateway.
type lateStore struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	opened *sqlite.Store
	closed bool
	told   string // the damaged file that has been reported
}

// store returns the store, and opens it where that has not succeeded yet.
func (s *lateStore) store(ctx context.Context) (*sqlite.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil && !s.closed {
		opened, err := sqlite.Open(ctx, s.path, sqlite.Options{})
		if err != nil {
			return nil, err
		}
		s.opened = opened
	}
	if s.opened == nil {
		return nil, errors.New("the store is closed")
	}
	return s.opened, nil
}

// Load returns what is stored.
func (s *lateStore) Load(ctx context.Context) ([]resilience.Record, error) {
	opened, err := s.store(ctx)
	if err != nil {
		return nil, err
	}
	records, err := opened.Load(ctx)
	s.report(opened)
	return records, err
}

// Apply stores changes.
func (s *lateStore) Apply(ctx context.Context, changes []resilience.Change) error {
	opened, err := s.store(ctx)
	if err != nil {
		return err
	}
	return opened.Apply(ctx, changes)
}

// Record keeps what an operator did.
func (s *lateStore) Record(ctx context.Context, a resilience.Audit) error {
	opened, err := s.store(ctx)
	if err != nil {
		return err
	}
	return opened.Record(ctx, a)
}

// Audits returns what operators did.
func (s *lateStore) Audits(ctx context.Context, limit int) ([]resilience.Audit, error) {
	opened, err := s.store(ctx)
	if err != nil {
		return nil, err
	}
	return opened.Audits(ctx, limit)
}

// report tells what a person should know of what was found in the file.
func (s *lateStore) report(opened *sqlite.Store) {
	moved, why := opened.Moved()
	s.mu.Lock()
	news := moved != s.told
	s.told = moved
	s.mu.Unlock()
	if news {
		s.log.Error("the store was damaged; it was moved aside and a new one begun, so exclusions from before are forgotten", "moved_to", moved, "error", why)
	}
	for _, row := range opened.Skipped() {
		s.log.Warn("the store holds something that makes no sense", "skipped", row.String())
	}
}

// Close closes the file.
func (s *lateStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.opened == nil {
		return nil
	}
	err := s.opened.Close()
	s.opened = nil
	return err
}
