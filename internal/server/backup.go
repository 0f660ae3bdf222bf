package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"omniroute/internal/config"
	"omniroute/resilience"
	"omniroute/store/sqlite"
)

// Backup copies the store of a configuration to a new SQLite file, which a gateway can be started
// with, and returns what it has copied. It never writes over a file.
func Backup(ctx context.Context, cfg *config.Config, file string) (from string, err error) {
	switch cfg.Store.Kind {
	case config.StoreSQLite:
		return cfg.Store.Path, sqlite.Backup(ctx, cfg.Store.Path, file)
	case config.StoreRedis:
		return backupShared(ctx, cfg.Store.Redis, file)
	}
	return "", errors.New("the configuration keeps its state in memory, so there is nothing to copy; set `store: sqlite:omniroute.db`")
}

// backupShared writes what the nodes share into a file of its own and gives it its name when it is
// complete.
func backupShared(ctx context.Context, r *config.Redis, file string) (from string, err error) {
	shared := SharedStore(r)
	defer func() { err = errors.Join(err, shared.Close()) }()
	records, err := shared.Load(ctx)
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(filepath.Dir(file), ".backup-*")
	if err != nil {
		return "", fmt.Errorf("the backup cannot be written: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	part := filepath.Join(folder, "part.db")
	copied, err := sqlite.Open(ctx, part, sqlite.Options{})
	if err != nil {
		return "", err
	}
	changes := make([]resilience.Change, len(records))
	for i, rec := range records {
		changes[i].Record = rec
	}
	if err := errors.Join(copied.Apply(ctx, changes), copied.Close()); err != nil {
		return "", err
	}
	// A link fails where there is a file, unlike a rename.
	if err := os.Link(part, file); err != nil {
		return "", fmt.Errorf("the backup cannot take its name: %w", err)
	}
	return shared.String(), nil
}
