package storetest

import (
	"strings"

	"pgregory.net/rapid"

	"omniroute/resilience"
)

// layers are the layers that a store keeps.
var layers = []resilience.Layer{
	resilience.LayerBreaker, resilience.LayerConnection, resilience.LayerModel, resilience.LayerOperator,
}

// oddNames are names that a config may hold and that a careless store trips over.
var oddNames = []string{
	"plain", "with space", " leading", "trailing ", "a/b/c", "/", "//", `back\slash`, `it's`, `"quoted"`, "semi;colon",
	"new\nline", "tab\tstop", "per%cent", "under_score", "a:b", "{braces}", "a*b?[c]", "na\u00efve", "nai\u0308ve", "模型", "🦀",
	"Case", "case", "NULL", "0", "-1", "1 2 3", "\x1f\x01", "é\u200b", strings.Repeat("long", 250),
}

// sample is a record with something in every column.
func sample(layer resilience.Layer, provider, connection, model string) resilience.Record {
	r := resilience.Record{
		Layer:     layer,
		Key:       resilience.Key{Provider: provider, Connection: connection, Model: model},
		State:     "cooling",
		Kind:      resilience.KindRateLimit,
		Level:     3,
		Failures:  4,
		SinceMs:   1_760_000_000_000,
		UntilMs:   1_760_000_030_000,
		UpdatedMs: 1_760_000_000_001,
		Detail:    `{"rule":"openai.rate_limit"}`,
	}
	if layer == resilience.LayerModel {
		r.LockoutMs = 120_000
	}
	return r
}

// samples has one record for each layer, all of the same key but for the tail.
func samples() []resilience.Record {
	return []resilience.Record{
		sample(resilience.LayerBreaker, "openai", "", ""),
		sample(resilience.LayerConnection, "openai", "main", ""),
		sample(resilience.LayerModel, "openai", "main", "gpt-5.2"),
		sample(resilience.LayerOperator, "openai", "main", ""),
	}
}

func put(records ...resilience.Record) []resilience.Change {
	changes := make([]resilience.Change, len(records))
	for i, r := range records {
		changes[i] = resilience.Change{Record: r}
	}
	return changes
}

func del(records ...resilience.Record) []resilience.Change {
	changes := make([]resilience.Change, len(records))
	for i, r := range records {
		changes[i] = resilience.Change{Delete: true, Record: resilience.Record{Layer: r.Layer, Key: r.Key}}
	}
	return changes
}

// Records generates any record that an engine may write. Few names are drawn, so that records
// meet often.
func Records() *rapid.Generator[resilience.Record] {
	name := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b"}), rapid.SampledFrom(oddNames))
	ms := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 1<<62))
	return rapid.Custom(func(t *rapid.T) resilience.Record {
		r := resilience.Record{
			Layer:     rapid.SampledFrom(layers).Draw(t, "layer"),
			Key:       resilience.Key{Provider: name.Draw(t, "provider"), Connection: name.Draw(t, "connection"), Model: name.Draw(t, "model")},
			State:     rapid.SampledFrom([]string{"", "CLOSED", "OPEN", "HALF_OPEN", "counting", "cooling", "locked", "quarantined", "excluded"}).Draw(t, "state"),
			Kind:      rapid.SampledFrom(resilience.Kinds()).Draw(t, "kind"),
			Level:     rapid.IntRange(0, 1<<40).Draw(t, "level"),
			Failures:  rapid.IntRange(0, 1<<40).Draw(t, "failures"),
			SinceMs:   ms.Draw(t, "since"),
			UntilMs:   ms.Draw(t, "until"),
			UpdatedMs: ms.Draw(t, "updated"),
			Detail:    rapid.OneOf(rapid.Just(""), rapid.Just(`{"a":[1,"ü",null]}`), rapid.StringN(0, 40, -1)).Draw(t, "detail"),
		}
		r.Detail = strings.ReplaceAll(r.Detail, "\x00", "")
		if r.Layer == resilience.LayerModel {
			r.LockoutMs = ms.Draw(t, "lockout")
		}
		return r
	})
}
