package sdk

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"omniroute/e2e/harness"
	"omniroute/e2e/upstream"
)

// mostEvents is more than any stream of the scenes has.
const mostEvents = 18

// TestRecover cuts streams of every dialect of provider behind each of their events, once, before
// every official client. What the client reads is the whole answer, as if nothing had happened, or
// an error behind a beginning of it. It is whole at least where the cut is within the text.
func TestRecover(t *testing.T) {
	t.Parallel()
	scenes := []string{"text", "reasoning", "tools"}
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			base, cuts := newCuttingGateway(t, scenes)
			var jobs []job
			for _, dialect := range upstream.Dialects {
				for _, scene := range scenes {
					for n := range mostEvents {
						jobs = append(jobs, job{Model: cutName(dialect, n, scene), Scene: scene, Stream: true})
					}
				}
			}
			whole := map[string]int{}
			for i, got := range a.run(t, base, jobs) {
				j := jobs[i]
				spent := cuts.of(j.Model)
				dialect, _, _ := strings.Cut(j.Model, "-")
				if got.Error != "" {
					if got.Problem != "" || !strings.HasPrefix(upstream.Want(j.Scene).Text, got.Text) && !usesTools(j.Scene) {
						t.Errorf("%s: an error behind %q (%s)", j.Model, got.Text, got.Problem)
					}
					continue
				}
				if spent.begun && got.Input%upstream.Input == 0 && got.Input <= 2*upstream.Input && got.Output <= 2*upstream.Output {
					// The cut stream may have told some, which count too; or it had the finish reason and
					// was whole without its usage.
					got.Input, got.Output = upstream.Input, upstream.Output
				}
				if wrong := a.check(j, got); wrong != "" {
					t.Errorf("%s: %s", j.Model, wrong)
				}
				if spent.midText {
					whole[dialect+" "+j.Scene]++
				}
			}
			for _, dialect := range upstream.Dialects {
				for _, scene := range scenes {
					if whole[dialect+" "+scene] == 0 {
						t.Errorf("no cut of the scene %s over %s was recovered", scene, dialect)
					}
				}
			}
		})
	}
}

func cutName(dialect string, n int, scene string) string {
	return fmt.Sprintf("%s-cut-%d-%s", dialect, n, scene)
}

// cutting is a vendor whose first stream for each model breaks off behind so many events as the
// model's name says.
type cutting struct {
	to   *upstream.Vendor
	mu   sync.Mutex
	done map[string]cut
}

// cut is what the stream had had.
type cut struct{ begun, midText bool }

var (
	cutModel = regexp.MustCompile(`[a-z]+-cut-(\d+)-[a-z]+`)
	someText = regexp.MustCompile(`"(content|text|delta)":"(Hello |Let me |4)"`)
	moreText = regexp.MustCompile(`"(content_block_stop|response.output_text.done)"|"(tool_calls|functionCall)"|finish_reason":"|finishReason":"`)
)

func (c *cutting) of(model string) cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[model]
}

func (c *cutting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	name := cutModel.FindSubmatch(append([]byte(r.URL.Path+" "), body...))
	req, err := http.NewRequestWithContext(r.Context(), r.Method, c.to.Root+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil || name == nil {
		http.Error(w, "no such model", http.StatusNotFound)
		return
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	n, _ := strconv.Atoi(string(name[1]))
	events := bytes.SplitAfter(answer, []byte("\n\n"))
	c.mu.Lock()
	_, again := c.done[string(name[0])]
	whole := again || n >= len(events)
	if !again {
		c.done[string(name[0])] = cut{}
	}
	if !whole {
		events = events[:n]
		sent := bytes.Join(events, nil)
		c.done[string(name[0])] = cut{begun: n > 0, midText: someText.Match(sent) && !moreText.Match(sent[someText.FindIndex(sent)[0]:])}
	}
	c.mu.Unlock()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(bytes.Join(events, nil))
	if !whole {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// cuttings are all vendors, by dialect.
type cuttings map[string]*cutting

func (c cuttings) of(model string) cut {
	dialect, _, _ := strings.Cut(model, "-")
	return c[dialect].of(model)
}

// newCuttingGateway runs a gateway that recovers, with a provider and a combo for each dialect,
// scene and place of a cut.
func newCuttingGateway(t *testing.T, scenes []string) (string, cuttings) {
	t.Helper()
	binary := harness.Binary(t)
	var providers, combos strings.Builder
	all := cuttings{}
	for _, dialect := range upstream.Dialects {
		c := &cutting{to: upstream.NewVendor(t, dialect, vendorKey), done: map[string]cut{}}
		all[dialect] = c
		server := httptest.NewServer(c)
		t.Cleanup(server.Close)
		for _, scene := range scenes {
			for n := range mostEvents {
				name := cutName(dialect, n, scene)
				fmt.Fprintf(&providers, "  %s: {dialect: %s, base_url: %q, models: [%s], connections: [{id: a, api_key: %s}]}\n",
					name, dialect, server.URL+strings.TrimPrefix(c.to.URL, c.to.Root), name, vendorKey)
				fmt.Fprintf(&combos, "  %s: {targets: [%s/%s], recover: continue}\n", name, name, name)
			}
		}
	}
	config := fmt.Sprintf("client_keys: [%q]\nstore: \"memory:\"\nrelay: {patience: 1ms, max_wait: 1ms}\nproviders:\n%scombos:\n%s", clientKey, &providers, &combos)
	return harness.Start(t, harness.Options{Binary: binary, Config: config}).URL, all
}
