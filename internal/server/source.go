package server

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"omniroute/internal/config"
	"omniroute/internal/route"
)

// Source is where a configuration comes from, at the start and at every reload.
type Source struct {
	// Load reads and checks it.
	Load func() (*config.Config, []config.Warning, error)
	// Path is the file that is watched for changes; empty for none.
	Path string
	// OwnFolder says that the store lies in a folder that is ours to make, such as the user's
	// state folder.
	OwnFolder bool
}

// DefaultFile is the configuration that is taken when none is named and it is there.
const DefaultFile = "omniroute.yaml"

// Find returns the configuration of a file or, with an empty path, DefaultFile in the working
// directory if it is there, else what the environment holds.
func Find(path string) Source {
	if path == "" {
		if _, err := os.Stat(DefaultFile); errors.Is(err, fs.ErrNotExist) {
			return Source{OwnFolder: true, Load: func() (*config.Config, []config.Warning, error) { return config.FromEnvironment(os.LookupEnv) }}
		}
		path = DefaultFile
	}
	return Source{Path: path, Load: func() (*config.Config, []config.Warning, error) { return config.Load(path) }}
}

// notHere begins the text that stands for a variable which is not set where somebody only looks. The
// name follows, since some values must differ.
const notHere = "not-set-here:"

// Look is Load for those who ask about a gateway and run none: variables that are not set here, such
// as keys that only the gateway's own environment holds, are no error. known is false for an
// admin token that came from one.
func (s Source) Look() (cfg *config.Config, known bool, err error) {
	cfg, _, err = s.Load()
	if err == nil || s.Path == "" {
		return cfg, true, err
	}
	src, readErr := os.ReadFile(s.Path)
	if readErr != nil {
		return nil, false, err
	}
	lenient, _, again := config.Parse(s.Path, src, func(name string) (string, bool) {
		if value, ok := os.LookupEnv(name); ok && value != "" {
			return value, true
		}
		return notHere + name, true
	})
	if again != nil {
		return nil, false, err // something else is wrong too
	}
	return lenient, !strings.HasPrefix(lenient.AdminToken.Reveal(), notHere), nil
}

// Check loads a configuration and checks what the configuration package alone cannot: whether the
// operator's error rules make sense to the classifier.
func (s Source) Check() (*config.Config, []config.Warning, error) {
	cfg, warnings, err := s.Load()
	if err == nil {
		_, err = route.Classifier(cfg)
	}
	return cfg, warnings, err
}
