package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"omniroute/internal/catalog"
)

// ErrNoKeys says that neither a file nor the environment names a provider. The text says what to do.
var ErrNoKeys = errors.New("there is no configuration and no known key in the environment; set a variable such as " +
	strings.Join(exampleVariables(), ", ") + ", or write a file with `omniroute init`")

// environmentName stands where a file's name would.
const environmentName = "environment"

// found is a known provider for which the environment has what is needed.
type found struct {
	provider  *catalog.Provider
	variables []string // that hold a key, one a connection
	baseURL   string   // for providers whose customers have their own
}

// FromEnvironment makes a configuration of the keys that the environment holds under their well-known names, each
// provider with its usual address; a second key is looked for under NAME_2, up to NAME_9. The state is
// kept in the user's state folder. The error is ErrNoKeys when there are none.
func FromEnvironment(env func(string) (string, bool)) (*Config, []Warning, error) {
	keys, warnings := search(env)
	if len(keys) == 0 {
		return nil, warnings, ErrNoKeys
	}
	var b strings.Builder
	for _, name := range []string{"client_keys", "admin_token"} {
		if line := gatewayKey(name, env); line != "" {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("providers:\n")
	for _, f := range keys {
		f.write(&b)
	}
	c, more, err := Parse(environmentName, []byte(b.String()), env)
	if err != nil {
		return nil, warnings, err
	}
	c.Store = stateStore(env)
	return c, append(warnings, more...), nil
}

// gatewayKey is the line for one of the gateway's own keys, "" when the environment has none.
func gatewayKey(key string, env func(string) (string, bool)) string {
	variable, line := "OMNIROUTE_ADMIN_TOKEN", `admin_token: "${OMNIROUTE_ADMIN_TOKEN}"`
	if key == "client_keys" {
		variable, line = "OMNIROUTE_CLIENT_KEY", `client_keys: ["${OMNIROUTE_CLIENT_KEY}"]`
	}
	if v, _ := env(variable); v == "" {
		return ""
	}
	return line
}

// search looks for every known provider's variables, in the order of the catalogue.
func search(env func(string) (string, bool)) ([]found, []Warning) {
	var all []found
	var warnings []Warning
	warn := func(format string, args ...any) {
		warnings = append(warnings, Warning{Position{File: environmentName}, "", fmt.Sprintf(format, args...)})
	}
	for _, p := range catalog.All() {
		f := found{provider: p}
		for _, base := range p.KeyVariables {
			for _, variable := range numbered(base) {
				switch value, _ := env(variable); {
				case value == "":
				case badKey(value) != "":
					warn("the variable %s was left out: %s", variable, badKey(value))
				default:
					f.variables = append(f.variables, variable)
				}
			}
			if len(f.variables) > 0 {
				break // the others are older names of the same
			}
		}
		if len(f.variables) == 0 {
			continue
		}
		if p.Retired != "" {
			warn("%s was left out: it was retired by its owner on %s", p.Title, p.Retired)
			continue
		}
		if p.BaseURLVariable != "" {
			address, _ := env(p.BaseURLVariable)
			address = strings.TrimRight(address, "/")
			if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
				warn("%s was left out: %s is set, but %s holds no address such as %s", p.Title, f.variables[0], p.BaseURLVariable, strings.TrimSuffix(p.BaseURLExample, p.BaseURLPath))
				continue
			}
			f.baseURL = strings.TrimSuffix(address, p.BaseURLPath) + p.BaseURLPath
		}
		all = append(all, f)
	}
	return all, warnings
}

// numbered returns the variable and its numbered siblings.
func numbered(variable string) []string {
	names := []string{variable}
	for i := 2; i <= 9; i++ {
		names = append(names, fmt.Sprintf("%s_%d", variable, i))
	}
	return names
}

// write writes the provider as YAML, indented below providers.
func (f found) write(b *strings.Builder) {
	fmt.Fprintf(b, "  %s:\n", f.provider.ID)
	if f.baseURL != "" {
		fmt.Fprintf(b, "    base_url: %s\n", yamlString(f.baseURL))
	}
	b.WriteString("    connections:\n")
	for i, variable := range f.variables {
		id := "main"
		if i > 0 {
			id = fmt.Sprintf("key%d", i+1)
		}
		fmt.Fprintf(b, "      - {id: %s, api_key: \"${%s}\"}\n", id, variable)
	}
}

// yamlString quotes a text for YAML so that nothing in it is expanded.
func yamlString(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, "'", "''"), "${", "$${") + "'"
}

// stateStore returns the database in the user's state folder; in memory where the environment names no folder.
func stateStore(env func(string) (string, bool)) Store {
	for _, place := range [][]string{{"XDG_STATE_HOME"}, {"LOCALAPPDATA"}, {"HOME", ".local", "state"}, {"USERPROFILE", ".local", "state"}} {
		if folder, _ := env(place[0]); filepath.IsAbs(folder) {
			return Store{Kind: StoreSQLite, Path: filepath.Join(append(append([]string{folder}, place[1:]...), "omniroute", "omniroute.db")...)}
		}
	}
	return Store{Kind: StoreMemory}
}

// exampleVariables are those of the best known providers.
func exampleVariables() []string {
	var names []string
	for _, p := range catalog.All() {
		if p.NeedsKey() && len(names) < 3 {
			names = append(names, p.KeyVariables[0])
		}
	}
	return names
}
