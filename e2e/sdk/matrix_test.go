package sdk

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"omniroute/e2e/harness"
	"omniroute/e2e/upstream"
)

// vendorKey is the providers' credential, which clients do not have.
const vendorKey = "vendor-key"

// TestMatrix lets every official client play every scene over every dialect of provider, streamed
// and not, and prints what came of it as a table.
func TestMatrix(t *testing.T) {
	t.Parallel()
	table := newTable()
	t.Cleanup(func() {
		t.Logf("scenes that clients (rows) played well over providers (columns), plain and streamed:\n%s", table)
	})
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			// A gateway for each client: no failure of one may shut out another.
			base := newMatrixGateway(t, upstream.NewVendor)
			var jobs []job
			for _, dialect := range upstream.Dialects {
				jobs = append(jobs, jobsOver(dialect)...)
			}
			outcomes := a.run(t, base, jobs)
			if len(outcomes) != len(jobs) {
				t.Fatalf("%d outcomes of %d jobs", len(outcomes), len(jobs))
			}
			for i, j := range jobs {
				dialect := strings.Split(j.Model, "-")[1]
				wrong := a.check(j, outcomes[i])
				table.add(a.name, dialect, j, wrong == "")
				if wrong != "" {
					t.Errorf("over %s, %s, %s: %s", dialect, j.Scene, kindOfCall(j.Stream), wrong)
				}
			}
		})
	}
}

// jobsOver are all scenes over one dialect of provider.
func jobsOver(dialect string) []job {
	var jobs []job
	for _, scene := range upstream.Scenes {
		for _, stream := range []bool{false, true} {
			if stream || !upstream.StreamedOnly(scene) {
				jobs = append(jobs, job{Model: modelName(dialect, scene), Scene: scene, Stream: stream})
			}
		}
	}
	return jobs
}

// TestMatrixTellsTheTruth lets the clients play with vendors of their own dialect and no gateway
// between. Vendors and clients must get along, and what a gateway could lose must be missed: a
// request made for another scene is refused, and the outcome of another scene is not taken.
func TestMatrixTellsTheTruth(t *testing.T) {
	t.Parallel()
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			v := upstream.NewVendor(t, a.dialect, clientKey)
			jobs := jobsOver(a.dialect)
			for _, scene := range []string{"tools", "image", "schema", "reasoning"} {
				jobs = append(jobs, job{Model: modelName(a.dialect, scene), Scene: "text"})
			}
			for i, got := range a.run(t, v.Root, jobs) {
				j := jobs[i]
				wrong := a.check(j, got)
				switch asked := strings.HasSuffix(j.Model, "-"+j.Scene); {
				case asked && wrong != "":
					t.Errorf("%s, %s: %s", j.Scene, kindOfCall(j.Stream), wrong)
				case !asked && (got.Status != http.StatusBadRequest || !strings.Contains(wrong, "came without")):
					t.Errorf("%s for a plain request: %q, want that something is missed", j.Model, wrong)
				}
				for _, other := range upstream.Scenes {
					if asked := upstream.Want(j.Scene); !reflect.DeepEqual(upstream.Want(other), asked) && a.check(job{Scene: other}, got) == "" && wrong == "" {
						t.Errorf("the outcome of %s passes for that of %s", j.Scene, other)
					}
				}
			}
		})
	}
}

// TestContraryVendors: what answers whole when it is to stream, and streams when it is to answer whole, serves every
// official client all the same.
func TestContraryVendors(t *testing.T) {
	t.Parallel()
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			base := newMatrixGateway(t, upstream.NewContrary)
			var jobs []job
			for _, dialect := range upstream.Dialects {
				jobs = append(jobs, slices.DeleteFunc(jobsOver(dialect), func(j job) bool { return upstream.StreamedOnly(j.Scene) })...)
			}
			for i, got := range a.run(t, base, jobs) {
				if wrong := a.check(jobs[i], got); wrong != "" {
					t.Errorf("%s, %s: %s", jobs[i].Model, kindOfCall(jobs[i].Stream), wrong)
				}
			}
		})
	}
}

// modelName names a provider's model for a scene, the same for client and provider.
func modelName(dialect, scene string) string { return "over-" + dialect + "-" + scene }

// newMatrixGateway runs a gateway with a provider of each dialect for each scene, so that what a
// failing scene does to its connection stays there. It returns the gateway's URL.
func newMatrixGateway(t *testing.T, vendor func(testing.TB, string, string) *upstream.Vendor) string {
	t.Helper()
	binary := harness.Binary(t)
	var config strings.Builder
	fmt.Fprintf(&config, "client_keys: [%q]\nstore: \"memory:\"\nrelay: {patience: 1ms, max_wait: 1ms}\nproviders:\n", clientKey)
	for _, dialect := range upstream.Dialects {
		v := vendor(t, dialect, vendorKey)
		for _, scene := range upstream.Scenes {
			fmt.Fprintf(&config, "  %s-%s: {dialect: %s, base_url: %q, models: [%s], connections: [{id: a, api_key: %s}]}\n",
				dialect, scene, dialect, v.URL, modelName(dialect, scene), vendorKey)
		}
	}
	return harness.Start(t, harness.Options{Binary: binary, Config: config.String()}).URL
}

// table counts scenes by client and dialect.
type table struct {
	mu    sync.Mutex
	cells map[[2]string]*cell
}

type cell struct {
	good, all int
	failed    []string
}

func newTable() *table { return &table{cells: map[[2]string]*cell{}} }

func (m *table) add(client, dialect string, j job, good bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := [2]string{client, dialect}
	c := m.cells[at]
	if c == nil {
		c = &cell{}
		m.cells[at] = c
	}
	c.all++
	if good {
		c.good++
	} else {
		c.failed = append(c.failed, j.Scene+" "+kindOfCall(j.Stream))
	}
}

func (m *table) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\t%s\n", strings.Join(upstream.Dialects, "\t"))
	for _, a := range agents {
		fmt.Fprint(w, a.name)
		for _, d := range upstream.Dialects {
			c := m.cells[[2]string{a.name, d}]
			if c == nil {
				fmt.Fprint(w, "\tnot played")
				continue
			}
			fmt.Fprintf(w, "\t%d/%d", c.good, c.all)
			if len(c.failed) > 0 {
				fmt.Fprintf(w, " not %s", strings.Join(c.failed, ", "))
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return b.String()
}
