package server

import (
	"context"
	"log/slog"

	"omniroute/resilience"
)

// logEvent writes a line for what an operator wants to read about. Single probes and longer
// deadlines are events too, but no news.
func (m *Main) logEvent(ev resilience.Event) {
	level := slog.LevelInfo
	switch ev.Type {
	case resilience.EventOpened, resilience.EventLocked, resilience.EventQuarantined, resilience.EventRepaired, resilience.EventLocalOutage:
		level = slog.LevelWarn
	case resilience.EventProbe, resilience.EventExtended:
		level = slog.LevelDebug
	case resilience.EventPersistenceDegraded, resilience.EventPersistenceOK, resilience.EventReset:
		return // the engine and the admin API have their own lines
	}
	if !m.log.Enabled(context.Background(), level) {
		return
	}
	var attrs []slog.Attr
	if ev.Key != (resilience.Key{}) {
		attrs = append(attrs, slog.String("key", ev.Key.String()), slog.String("layer", ev.Layer.String()))
	}
	if ev.Layer != resilience.LayerOperator && ev.Kind != resilience.KindUnknown {
		attrs = append(attrs, slog.String("kind", ev.Kind.String()))
	}
	if !ev.Until.IsZero() {
		attrs = append(attrs, slog.Time("until", ev.Until.Time))
	}
	if ev.Rule != "" {
		attrs = append(attrs, slog.String("rule", ev.Rule))
	}
	if ev.Cause != "" {
		attrs = append(attrs, slog.String("cause", ev.Cause))
	}
	m.log.LogAttrs(context.Background(), level, string(ev.Type), attrs...)
}
