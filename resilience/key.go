package resilience

import "strings"

// Key names what a gate guards. An empty tail is wider: {"openai","",""} is the
// provider, {"openai","main",""} one connection of it, {"openai","main","gpt-5.2"} a target.
type Key struct {
	Provider   string `json:"provider"`
	Connection string `json:"connection,omitempty"`
	Model      string `json:"model,omitempty"`
}

// String joins the names that are set: "openai/main/gpt-5.2". It is for people, not for parsing.
func (k Key) String() string {
	parts := []string{k.Provider}
	if k.Connection != "" || k.Model != "" {
		parts = append(parts, cmpOr(k.Connection, "*"))
	}
	if k.Model != "" {
		parts = append(parts, k.Model)
	}
	return strings.Join(parts, "/")
}

// Contains reports whether other is k or nested below it.
func (k Key) Contains(other Key) bool {
	return (k.Provider == "" || k.Provider == other.Provider) &&
		(k.Connection == "" || k.Connection == other.Connection) &&
		(k.Model == "" || k.Model == other.Model)
}

func cmpOr(s, alt string) string {
	if s != "" {
		return s
	}
	return alt
}

// Layer says which of the three layers, or the operator, turns traffic away, or what else does.
type Layer uint8

// The layers in the order in which they are asked on the way in.
const (
	LayerNone Layer = iota
	LayerBreaker
	LayerConnection
	LayerModel
	LayerOperator
)

// What keeps a request from a target beside its gates. The engine sets none of these: they are for
// those who put both side by side.
const (
	LayerFit         Layer = iota + LayerOperator + 1 // the model cannot take such a request
	LayerHeadroom                                     // the upstream has too little left
	LayerConcurrency                                  // every place on the connection is taken
)

var layerNames = [...]string{"none", "breaker", "connection", "model", "operator", "fit", "headroom", "concurrency"}

// String returns the layer's name as the API spells it.
func (l Layer) String() string { return nameOf(layerNames[:], int(l)) }

// MarshalText makes the layer readable in JSON.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a layer by its name.
func (l *Layer) UnmarshalText(b []byte) error {
	i, err := parseName(layerNames[:], "layer", string(b))
	*l = Layer(i)
	return err
}
