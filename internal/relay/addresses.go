package relay

import (
	"net/url"
	"strings"
	"sync"
)

// addresses keeps the URLs of upstreams' calls. A request holds its URL as long as its answer lasts, so
// that those of one call share theirs.
type addresses struct {
	mu   sync.RWMutex
	kept map[address]*url.URL
}

type address struct{ base, path string }

// A configuration has few base URLs, and official clients few paths; reloads may bring new ones, and
// other clients whatever they like.
const (
	maxAddresses = 1000
	maxKeptPath  = 256 // bytes
)

// get returns the URL of a path below a base URL. It must not be changed.
func (a *addresses) get(base, path string) (*url.URL, error) {
	at := address{base, path}
	a.mu.RLock()
	u := a.kept[at]
	a.mu.RUnlock()
	if u != nil {
		return u, nil
	}
	u, err := below(base, path)
	if err != nil || len(path) > maxKeptPath {
		return u, err
	}
	at.path = strings.Clone(path) // of a request line that may be long
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil || len(a.kept) >= maxAddresses {
		a.kept = map[address]*url.URL{}
	}
	a.kept[at] = u
	return u, nil
}

func below(base, path string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	u.Fragment, u.RawFragment = "", ""
	if u.RawPath != "" {
		u.RawPath += (&url.URL{Path: path}).EscapedPath()
	}
	u.Path += path
	return u, nil
}
