package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// Reload reads the configuration again and puts it in force without touching a running request. A
// configuration that cannot be used is refused and logged: the old one stays.
//
// Gates, turns and latencies keep what they know under their names. The listeners and the store are
// those of the start; a change of them is reported and waits for a restart.
func (m *Main) Reload() error { return m.reloadBy("program") }

// reloadBy is Reload with who wished it, for the trail.
func (m *Main) reloadBy(actor string) error {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	if m.draining.Load() {
		return errDraining
	}
	if err := m.reload(); err != nil {
		m.logRefused(err)
		m.admin.Note(actor, "", "reload_refused", resilience.Key{}, m.o.Source.Path)
		return err
	}
	cfg := m.Config()
	m.log.Info("the configuration was reloaded", "config", cfg.File, "providers", len(cfg.Providers), "combos", len(cfg.Combos))
	m.admin.Note(actor, "", "reload", resilience.Key{}, cfg.File)
	for _, key := range m.needRestart(cfg) {
		m.log.Warn("the new value is in force after a restart only", "key", key)
	}
	return nil
}

func (m *Main) reload() error {
	cfg, err := m.load()
	if err != nil {
		return err
	}
	if err := m.guarded(cfg); err != nil {
		return err
	}
	c, err := route.Classifier(cfg)
	if err != nil {
		return err
	}
	if m.cert != nil && cfg.TLS != nil {
		if err := m.cert.use(*cfg.TLS); err != nil {
			return err
		}
	}
	m.keys.Adopt(context.Background(), cfg)
	old := m.router.Load()
	if err := m.engine.Configure(route.EngineConfig(cfg)); err != nil {
		m.keys.Adopt(context.Background(), old.Config())
		return fmt.Errorf("the engine refuses the configuration: %w", err)
	}
	router, err := route.New(cfg, m.engine, old)
	if err != nil {
		m.keys.Adopt(context.Background(), old.Config())
		return errors.Join(err, m.engine.Configure(route.EngineConfig(old.Config())))
	}
	m.classifier.Store(c.Noting(m.noteUnknown))
	m.router.Store(router)
	m.withoutKeys()
	m.alerts.Configure(cfg)
	m.traces.Configure(cfg.Tracing)
	m.metrics.Configure(route.EngineConfig(cfg))
	return nil
}

// guarded refuses a configuration that would open the present listener to everybody: what it says
// of keys fits its own listener, which comes with the restart.
func (m *Main) guarded(cfg *config.Config) error {
	if m.reach.Local() || len(cfg.ClientKeys) > 0 && !cfg.AdminToken.Empty() {
		return nil
	}
	return fmt.Errorf("%s: other machines can reach the running listener %s until a restart, so client_keys and admin_token must stay; keep both and restart", cfg.File, m.reach)
}

// logRefused writes a line for each thing that is wrong with a new configuration.
func (m *Main) logRefused(err error) {
	var all config.Errors
	if !errors.As(err, &all) {
		m.log.Error("the new configuration was refused", "error", err)
	}
	for _, e := range all {
		first, _, _ := strings.Cut(e.Message, "\n")
		m.log.Error("the new configuration was refused", "at", e.Position.String(), "key", e.Path, "error", first)
	}
	m.log.Warn("the old configuration stays in force; `omniroute check` shows what is wrong with the new one")
}

// needRestart lists the keys whose new values cannot be taken over.
func (m *Main) needRestart(cfg *config.Config) []string {
	var keys []string
	if cfg.Listen != m.reach {
		keys = append(keys, "listen")
	}
	if (cfg.TLS != nil) != (m.cert != nil) {
		keys = append(keys, "tls")
	}
	if cfg.Metrics != m.apart {
		keys = append(keys, "metrics_listen")
	}
	if cfg.Record != m.recorded {
		keys = append(keys, "record")
	}
	if !cfg.Store.Equal(m.stored) {
		keys = append(keys, "store")
	}
	return keys
}
