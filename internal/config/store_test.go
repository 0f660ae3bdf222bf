package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func parseStore(t *testing.T, url string) (*Config, error) {
	t.Helper()
	env := func(name string) (string, bool) { return "p%40ss/word", name == "PASSWORD" }
	text := "store: '" + url + "'\nproviders: {openai: {connections: [{id: a, api_key: sk-live-literal-0001}]}}\n"
	c, _, err := parse("omniroute.yaml", []byte(text), env, func(string) ([]byte, error) { return nil, os.ErrNotExist })
	return c, err
}

func TestRedisStore(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]Redis{
		"redis://127.0.0.1":                   {Address: "127.0.0.1:6379"},
		"redis://cache.example:6380/3":        {Address: "cache.example:6380", DB: 3},
		"rediss://u:pass@[::1]:7/0":           {Address: "[::1]:7", User: "u", Password: NewSecret("pass"), TLS: true},
		"redis://:pass@h/?prefix=staging:":    {Address: "h:6379", Password: NewSecret("pass"), Prefix: "staging:"},
		"redis://u:p%40ss%2Fword%23@h:1/15":   {Address: "h:1", DB: 15, User: "u", Password: NewSecret("p@ss/word#")},
		"redis://u:${PASSWORD:-other}@h:1/15": {Address: "h:1", DB: 15, User: "u", Password: NewSecret("other")},
	} {
		c, err := parseStore(t, url)
		if strings.Contains(url, "$") {
			// A variable's value is taken as it is: it must be escaped, as docs/cluster.md says.
			if err == nil {
				t.Errorf("%s: a slash in a password was taken", url)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		same := Store{Kind: StoreRedis, Redis: &want}
		if !c.Store.Equal(same) || !same.Equal(c.Store) {
			t.Errorf("%s: %+v", url, c.Store.Redis)
		}
		if other := (Store{Kind: StoreRedis, Redis: &Redis{Address: "other:1"}}); c.Store.Equal(other) || c.Store.Equal(Store{Kind: StoreMemory}) {
			t.Errorf("%s equals another", url)
		}
	}
}

func TestRedisStoreErrors(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	for url, says := range map[string]string{
		"redis://":                         "name one server",
		"redis:host":                       "name one server",
		"redis://:" + secret + "@":         "name one server",
		"redis://a:1,b:2/0":                "name one server",
		"redis://" + secret + "@h":         "the password is missing",
		"redis://u:" + secret + "%zz@h":    "this is no URL",
		"redis://u:" + secret + "@h:99999": "is no port",
		"redis://h/first":                  "is no number of a database",
		"redis://h/-1":                     "is no number of a database",
		"redis://h/0#x":                    "nothing can follow a #",
		"redis://h?db=1":                   `there is no option "db"`,
		"redis://h?prefix=":                "a prefix has",
		"redis://h?prefix=a&prefix=b":      "twice",
		"redis://h?ca=x.pem":               "rediss://",
		"rediss://h?ca=x.pem":              "ca: ",
		"redis://h?%zz":                    "makes no sense",
		"redis+sentinel://h":               "not supported",
		"valkey://h":                       "redis://HOST:PORT/DB",
		"redis-sentinel://h":               "not supported",
	} {
		_, err := parseStore(t, url)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", url, err)
		}
		if errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a bare file error", url)
		}
	}
}

// A password in the store's address is as secret as a key.
func TestRedisPasswordIsHidden(t *testing.T) {
	t.Parallel()
	c, err := parseStore(t, "redis://u:hunter2secret@h")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Hide("AUTH hunter2secret"); strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}
