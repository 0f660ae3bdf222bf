package relay

import (
	"strings"
	"testing"
)

func TestAddressesAreShared(t *testing.T) {
	const base = "https://host.example/v1?api-version=2"
	var a addresses
	one, err := a.get(base, "/chat/completions")
	if err != nil {
		t.Fatal(err)
	}
	if got := one.String(); got != "https://host.example/v1/chat/completions?api-version=2" {
		t.Errorf("the address is %s", got)
	}
	if two, _ := a.get(base, "/chat/completions"); two != one {
		t.Error("two requests for one call have an address each")
	}
	with := withQuery(one, "beta=true")
	if got := with.RawQuery; got != "api-version=2&beta=true" {
		t.Errorf("with the client's query it is %s", got)
	}
	if one.RawQuery != "api-version=2" {
		t.Errorf("a client's query has got into what is shared: %s", one.RawQuery)
	}
	if other, _ := a.get("https://host.example/a%2Fb", "/models/x y"); other.String() != "https://host.example/a%2Fb/models/x%20y" {
		t.Errorf("the address is %s", other)
	}
	if _, err := a.get("://", "/x"); err == nil {
		t.Error("a base URL that is none has an address")
	}
}

// Paths are up to clients, so that what is kept for them is bounded.
func TestAddressesAreBounded(t *testing.T) {
	var a addresses
	for i := range 3 * maxAddresses {
		if _, err := a.get("https://host.example", "/"+strings.Repeat("x", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.kept); n == 0 || n > maxKeptPath {
		t.Errorf("%d addresses are kept; those with a longer path than %d should not be", n, maxKeptPath)
	}
	for i := range 3 * maxAddresses {
		if _, err := a.get("https://host.example", "/"+string(rune('0'+i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.kept); n > maxAddresses {
		t.Errorf("%d addresses are kept", n)
	}
}
