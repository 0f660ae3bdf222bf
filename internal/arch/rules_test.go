package arch

import (
	"fmt"
	"slices"
	"strings"
)

// module is the path before every import of ours.
const module = "omniroute"

// onlyOurs lists, for a public package, all of ours that it may import. A trailing "/" means the
// package and everything below it.
var onlyOurs = []struct {
	pkg     string
	may     []string
	stdOnly bool // and of the rest only the standard library
}{
	{pkg: "resilience", stdOnly: true},
	{pkg: "classify", may: []string{"resilience"}},
	{pkg: "failover", may: []string{"resilience", "classify"}},
	{pkg: "store", stdOnly: true},
	{pkg: "store/", may: []string{"resilience", "store/"}},
}

// heights orders the packages: an import goes down, never up or sideways. A package stands as
// high as the longest name here that it equals or lies below. Inside one name the order is free,
// since the compiler refuses cycles.
var heights = map[string]int{
	"resilience": 0,
	"classify":   1, "store": 1,
	"failover": 2,
	// An internal package that has no line here is a helper: it stands on leafHeight.
	"internal/catalog": 4, "internal/dialect": 4,
	"internal/config": 5, "internal/telemetry": 5,
	"internal/route": 6, "internal/credential": 6, "internal/alert": 6, "internal/trace": 6, "internal/outcomes": 6,
	"internal/relay":   7,
	"internal/gateway": 8, "internal/admin": 8, "internal/livecheck": 8,
	"internal/dashboard": 9,
	"internal/server":    10, "transport": 10,
	"internal/lab": 10, "internal/gateway/gatewaytest": 11,
	"cmd": 11, "bench": 12,
}

// leafHeight is above the library and below everything else, so a helper may be imported by every
// internal package and must not import one.
const leafHeight = 3

// importedBy lists packages that only these may import outside tests.
var importedBy = map[string][]string{
	"internal/lab":                 {"cmd/", "internal/lab/", "internal/gateway/gatewaytest", "bench/"},
	"internal/dialect/sample":      {"bench/"},
	"internal/dialect/dialecttest": {},
	// A world for tests of the client API.
	"internal/gateway/gatewaytest": {},
	// Certificates for tests.
	"internal/certtest": {},
	// A real server for tests.
	"internal/redistest": {},
}

// height returns how high a package of ours stands, and the name of heights that says so.
func height(pkg string) (int, string) {
	for name := pkg; name != ""; name = parent(name) {
		if h, ok := heights[name]; ok {
			return h, name
		}
	}
	return leafHeight, pkg
}

func parent(pkg string) string {
	i := strings.LastIndexByte(pkg, '/')
	return pkg[:max(i, 0)]
}

// covers reports whether pattern means pkg.
func covers(pattern, pkg string) bool {
	below, tree := strings.CutSuffix(pattern, "/")
	return pkg == below || tree && strings.HasPrefix(pkg, pattern)
}

func coversAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, pkg) })
}

// broken says which rules an import breaks, in sentences. Both names are without the module's
// path when they are ours; ours says whether imported is.
func broken(importer, imported string, ours bool) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	for _, rule := range onlyOurs {
		if !covers(rule.pkg, importer) {
			continue
		}
		switch {
		case ours && !coversAny(rule.may, imported):
			add("%s imports %s: of ours it may import only %v", importer, imported, rule.may)
		case !ours && rule.stdOnly && !standard(imported):
			add("%s imports %s: it may import only the standard library", importer, imported)
		}
	}
	if !ours {
		return out
	}

	from, fromName := height(importer)
	to, toName := height(imported)
	if fromName != toName && from <= to {
		add("%s imports %s, which does not stand below it: move what both need down, or give a new package its height in internal/arch", importer, imported)
	}
	if by, ok := importedBy[toName]; ok && !coversAny(by, importer) {
		add("%s imports %s: only %v and tests may", importer, imported, by)
	}
	return out
}

// standard reports whether an import path is the standard library's: its first element has no dot.
// "C" is cgo, which a static binary cannot have.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return path != "C" && !strings.Contains(first, ".")
}
