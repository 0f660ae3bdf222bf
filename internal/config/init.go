package config

import (
	"strings"

	"omniroute/internal/catalog"
)

// SchemaFile is the name under which a configuration made by Init looks for its schema.
const SchemaFile = "omniroute.schema.json"

// Init returns a commented configuration for the keys that the environment holds. It parses cleanly where the same
// variables are set. Lines that begin with a bare # are settings that can be taken into use by removing it.
func Init(env func(string) (string, bool)) []byte {
	keys, _ := search(env)
	var b strings.Builder
	line := func(lines ...string) {
		for _, l := range lines {
			b.WriteString(l + "\n")
		}
	}
	line("# yaml-language-server: $schema="+SchemaFile,
		"# Editors that know the line above check this file as you type; `omniroute schema > "+SchemaFile+"` writes the schema.",
		"# `omniroute check` checks it too. ${NAME} is a variable of the environment, ${NAME:-} one that may be missing.",
		"",
		"# Where clients connect. Other machines can reach 0.0.0.0:20128; client_keys and admin_token are needed then.",
		"listen: "+root.field("listen").def,
		"")
	line("# The keys of your clients (`omniroute key` makes one), and the token of the admin API.")
	for _, name := range []string{"client_keys", "admin_token"} {
		if set := gatewayKey(name, env); set != "" {
			line(set)
		} else {
			line("#" + name + ": " + root.field(name).example)
		}
	}
	line("", "# What is out of service, and until when, survives a restart here.", "store: "+root.field("store").def, "")

	line("# Known names bring address, dialect and error rules. Add a connection for each further account or key.", "providers:")
	for _, f := range keys {
		f.write(&b)
	}
	if len(keys) == 0 {
		first := catalog.All()[0]
		line("  # No known key was found in the environment; this one is left out until it is set.",
			"  "+first.ID+":", "    connections:", "      - {id: main, api_key: \"${"+first.KeyVariables[0]+":-}\"}")
	}
	line("#  ollama:", "#    models: [llama3.3]",
		"#  acme:                                # any service that speaks a known dialect",
		"#    base_url: https://llm.acme.example/v1",
		"#    models: [acme-large]",
		"#    connections:",
		"#      - {id: main, api_key: \"${ACME_API_KEY:-}\"}",
		"")
	line("# Clients ask for a combo as if it were a model. Without one they write provider/model, or a bare model name.")
	if targets := exampleTargets(keys); len(targets) > 0 {
		line("#combos:", "#  coding:", "#    targets:")
		for _, t := range targets {
			line("#      - " + t)
		}
		line("")
	}
	line("# The defaults of everything else.")
	for _, section := range []string{"resilience", "relay"} {
		line("#" + section + ":")
		for _, f := range root.field(section).fields {
			line("#  " + f.key + ": " + f.defaults())
		}
	}
	return []byte(b.String())
}

// exampleTargets names one target of each of the first providers found.
func exampleTargets(keys []found) []string {
	if len(keys) == 0 {
		keys = []found{{provider: catalog.All()[0]}}
	}
	var targets []string
	for _, f := range keys[:min(len(keys), 3)] {
		targets = append(targets, f.provider.ID+"/MODEL")
	}
	return targets
}

// defaults is the default of a field as YAML, of an object with all its fields in one line.
func (f *field) defaults() string {
	if f.kind != kindObject {
		return f.def
	}
	var parts []string
	for _, below := range f.fields {
		if d := below.defaults(); d != "" {
			parts = append(parts, below.key+": "+d)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
