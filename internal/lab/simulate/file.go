package simulate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniroute/internal/config"
)

// File is a schedule: a configuration, who asks for what, and what goes wrong and when. Times are
// counted from the beginning of the run.
type File struct {
	// Title heads the report. Defaults to the file's name.
	Title string `yaml:"title"`
	// Config names the gateway's configuration, from the file's folder, or, where it has more than
	// one line, is the configuration. Variables that are not set stand for made-up keys.
	Config string `yaml:"config"`
	// Length is how long requests keep coming. The run goes on until the last one is over.
	Length Duration `yaml:"length"`
	// Seed makes everything drawn by chance. Defaults to 1.
	Seed uint64 `yaml:"seed"`
	// Traffic is what clients do. At least one entry.
	Traffic []Traffic `yaml:"traffic"`
	// Upstreams are the providers of the configuration that behave in a way of their own.
	Upstreams map[string]Upstream `yaml:"upstreams"`
	// Nodes is how many gateways there are, each with an equal part of the traffic. Defaults to 1.
	Nodes Count `yaml:"nodes"`
	// Shared lets the nodes share what they know, as they do through a shared store; Propagation is
	// how often each hears of the others, 200ms by default.
	Shared      bool     `yaml:"shared"`
	Propagation Duration `yaml:"propagation"`

	// Naive plays a proxy that only retries in place of the gateway: each request goes through the
	// targets in their order until one answers, and nothing is remembered.
	Naive bool `yaml:"-"`

	path string
	src  []byte
	cfg  *config.Config
}

// Traffic is one stream of requests.
type Traffic struct {
	// Model is what the clients ask for: a combo, a provider/model or a model.
	Model string `yaml:"model"`
	// Rate is how many requests come in a second.
	Rate float64 `yaml:"rate"`
	// Arrivals is "random" (a Poisson process, the default) or "even".
	Arrivals string `yaml:"arrivals"`
	// From and To bound it; To 0 means to the end.
	From Duration `yaml:"from"`
	To   Duration `yaml:"to"`
	// Stream is the share that asks for a stream, from 0 to 1. Defaults to 1.
	Stream *float64 `yaml:"stream"`
	// Prompt and Output are how many tokens a prompt and an answer have. Default to 2000 and 400, with a
	// spread of 0.5.
	Prompt Spread `yaml:"prompt_tokens"`
	Output Spread `yaml:"output_tokens"`
	// Sessions is how many sessions share the requests; 0 means that none is named.
	Sessions Count `yaml:"sessions"`
	// Leave is the share of clients that leave before the end, Patience after how long they do.
	// Patience defaults to 5s.
	Leave    float64 `yaml:"leave"`
	Patience Spread  `yaml:"patience"`
}

// Upstream is how a provider behaves.
type Upstream struct {
	// First is the time to the first content. Defaults to 600ms with a spread of 0.5.
	First Spread `yaml:"first"`
	// Speed is how many tokens a second come after that. Defaults to 100, with a spread of 0.3.
	Speed Spread `yaml:"speed"`
	// Refusal is how long a failure takes to come. Defaults to 75ms with a spread of 0.2.
	Refusal Spread `yaml:"refusal"`
	// Limits are the rate limits and quotas that it enforces.
	Limits []Limit `yaml:"limits"`
	// Capacity is how many attempts it bears within a second: while more of them come, failed ones
	// included, every further one is answered by Overload. 0 means any number.
	Capacity Count `yaml:"capacity"`
	// Overload is the fault beyond the capacity. Defaults to 503-no-hint.
	Overload string `yaml:"overload"`
	// Events are what goes wrong.
	Events []Event `yaml:"events"`
}

// Limit is a bucket of requests that fills again at a fixed time.
type Limit struct {
	// Per is "connection" (the default), "model" (each model on each connection) or "provider".
	Per string `yaml:"per"`
	// Requests is how many are taken in a window of Every, which defaults to a minute and is at least a
	// second.
	Requests Count    `yaml:"requests"`
	Every    Duration `yaml:"every"`
	// Headers tells what is left of it in the headers of every answer.
	Headers bool `yaml:"headers"`
	// Answer is the fault beyond it. Defaults to 429 with the time until the window's end.
	Answer string `yaml:"answer"`
	// Connection and Model narrow it; empty means all.
	Connection string `yaml:"connection"`
	Model      string `yaml:"model"`
}

// UnmarshalYAML fills in the defaults and reads the rest.
func (l *Limit) UnmarshalYAML(read func(any) error) error {
	type plain Limit
	p := plain{Per: "connection", Every: Duration(time.Minute)}
	if err := read(&p); err != nil {
		return err
	}
	*l = Limit(p)
	return nil
}

// Event is a time in which attempts do not go well.
type Event struct {
	From Duration `yaml:"from"`
	To   Duration `yaml:"to"` // 0 means to the end
	// Connection and Model narrow it; empty means all.
	Connection string `yaml:"connection"`
	Model      string `yaml:"model"`
	// Share is how many of the attempts are met, from 0 to 1. Defaults to 1.
	Share *float64 `yaml:"share"`
	// Answer is the fault that meets them, by the names of the demo's fault models: 500, 429:30s,
	// hang, cut:8 and so on.
	Answer string `yaml:"answer"`
	// Slow makes good answers so many times slower, instead of an Answer.
	Slow float64 `yaml:"slow"`
}

// Load reads and checks a file.
func Load(path string) (*File, error) {
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s; examples/ has some to begin with", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the schedule cannot be read: %w", err)
	}
	return Parse(path, src)
}

// Parse checks a schedule that was read from path, which names it in messages and from whose folder
// its configuration is taken.
func Parse(path string, src []byte) (*File, error) {
	f := &File{path: path, src: src, Seed: 1, Nodes: 1}
	if err := f.decode(); err != nil {
		return nil, err
	}
	if f.Title == "" {
		f.Title = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if err := f.Use(f.Config); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, nil
}

// Use plays the schedule with another configuration: the name of a file, or the text itself.
func (f *File) Use(conf string) error {
	name, text := f.path, []byte(conf)
	if conf == f.Config {
		text = f.inPlace()
	}
	if !strings.Contains(strings.TrimSpace(conf), "\n") {
		if conf == "" {
			return f.errorf("$.config", "it needs the gateway's configuration: a file's name, or the configuration as a block (config: |)")
		}
		if name = conf; !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(f.path), conf)
		}
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return f.errorf("$.config", "the configuration cannot be read: %v", err)
		}
	}
	cfg, _, err := config.Parse(name, text, madeUp)
	if err != nil {
		return fmt.Errorf("%s: the configuration is not good:\n%w", f.path, err)
	}
	f.Config, f.cfg = conf, cfg
	return nil
}

// madeUp gives every variable a value, since no key is needed where nothing is asked.
func madeUp(name string) (string, bool) {
	if v, ok := os.LookupEnv(name); ok && v != "" {
		return v, true
	}
	return "made-up-" + strings.ToLower(name), true
}
