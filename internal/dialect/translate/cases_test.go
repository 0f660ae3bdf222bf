package translate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

// dialectCases is where further cases are kept that this repository does not hold: the folder in
// OMNIROUTE_DIALECTS, or shared/dialects beside the repository.
func dialectCases(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OMNIROUTE_DIALECTS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "dialects")
	}
	if _, err := os.Stat(filepath.Join(dir, "view.py")); err != nil {
		t.Skipf("no cases: %v; name their folder in OMNIROUTE_DIALECTS", err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the reader of the cases needs python3")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// disputed are cases whose expectation we do not share, with the reason.
var disputed = map[string]string{
	"resp-reasoning-encrypted-stream__anthropic": twoResponses,
	"resp-reasoning-encrypted-stream__chat":      twoResponses,
}

const twoResponses = "its stream holds two responses, one after the terminal event of the other; nothing follows a terminator (law S6)"

type dialectCase struct {
	file   string
	ID     string
	Tags   []string
	Client struct {
		Dialect, Method, Path string
		Body                  json.RawMessage
	}
	Upstreams []struct {
		Dialect string
		Status  int
		Headers map[string]string
		End     string
		Body    []struct {
			Text, B64, Repeat string
			Count             int
		}
	}
}

// readCases reads all cases, in the order of their files' names.
func readCases(t *testing.T, dir string) []*dialectCase {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "cases", "*.json")) // sorted
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	var out []*dialectCase
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := &dialectCase{file: filepath.Base(path)}
		if err := json.Unmarshal(raw, c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, c)
	}
	return out
}

func (c *dialectCase) bytes(i int) []byte {
	var b bytes.Buffer
	for _, p := range c.Upstreams[i].Body {
		b.WriteString(p.Text)
		raw, _ := base64.StdEncoding.DecodeString(p.B64)
		b.Write(raw)
		b.WriteString(strings.Repeat(p.Repeat, p.Count))
	}
	return b.Bytes()
}

// judge reads one exchange a line and says which facts of its case do not hold.
const judge = `
import sys, json, base64, types
sys.path.insert(0, sys.argv[1])
import view as V, run_cases as R
for line in sys.stdin:
    x = json.loads(line); case = json.load(open(sys.argv[1] + '/cases/' + x['file']))
    raw = base64.b64decode(x['raw']); hd = {'content-type': x['type']}
    mock = types.SimpleNamespace(n=1, reqs=[dict(body=json.loads(x['sent']) if x['sent'] else {}, raw=x['sent'], headers={}, path=x['path'])])
    v = R.facts(case, x['status'], hd, raw, False, mock); bad = []
    for e in case['expect']:
        if e['fact'].startswith('headers.') or e['fact'] == 'upstream_requests': continue
        g = R.fact(v, e['fact'])
        if not R.op(e['op'], g, e.get('value')): bad.append([e.get('level', 'must'), e['fact'] + ' ' + e['op'], str(e.get('value'))[:200], str(g)[:300]])
    for r in case['upstreams'][0].get('request') or []:
        if r['path'].startswith('header:') or r['path'] == 'query': continue
        g = x['sent'] if r['op'] in ('raw_contains', 'raw_not_contains') else R.get(mock.reqs[0]['body'], r['path'])
        o = {'raw_contains': 'contains', 'raw_not_contains': 'not_contains'}.get(r['op'], r['op'])
        if not R.op(o, g, r.get('value')): bad.append([r.get('level', 'must'), 'upstream ' + r['path'] + ' ' + r['op'], str(r.get('value'))[:200], str(g)[:300]])
    print(json.dumps(dict(id=case['id'], bad=bad)))
`

// TestDialectCases translates what the cases send and get, without a gateway between. Cases about
// statuses, headers, failover and bytes that pass through need a gateway and are left out.
func TestDialectCases(t *testing.T) {
	t.Parallel()
	dir := dialectCases(t)
	var lines bytes.Buffer
	left := 0
	for _, c := range readCases(t, dir) {
		x, ok := exchangeOf(t, c)
		if !ok {
			left++
			continue
		}
		x["file"] = c.file
		line, _ := json.Marshal(x)
		lines.Write(append(line, '\n'))
	}
	cmd := exec.Command("python3", "-B", "-c", judge, dir)
	cmd.Stdin, cmd.Stderr = &lines, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	passed, failed, should := 0, 0, 0
	for line := range strings.Lines(string(out)) {
		var r struct {
			ID  string
			Bad [][]string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if why := disputed[r.ID]; why != "" {
			t.Logf("%s: disputed: %s", r.ID, why)
			left++
			continue
		}
		wrong := false
		for _, b := range r.Bad {
			if b[0] == "must" {
				wrong = true
				t.Errorf("%s: %s: want %s, got %s", r.ID, b[1], b[2], b[3])
			} else {
				should++
				t.Logf("%s: should: %s: want %s, got %s", r.ID, b[1], b[2], b[3])
			}
		}
		if wrong {
			failed++
		} else {
			passed++
		}
	}
	t.Logf("%d passed, %d failed; %d facts that should hold do not; %d cases left out", passed, failed, should, left)
}

// exchangeOf plays a case without a network: a success status, one upstream of another dialect,
// a body that is not compressed.
func exchangeOf(t *testing.T, c *dialectCase) (map[string]any, bool) {
	t.Helper()
	word := map[string]string{"chat": "openai"}
	nameOf := func(d string) string {
		if w := word[d]; w != "" {
			return w
		}
		return d
	}
	if len(c.Client.Body) == 0 || len(c.Upstreams) != 1 || c.Upstreams[0].Status != 200 || c.Upstreams[0].Headers["content-encoding"] != "" {
		return nil, false
	}
	from, to := Dialect(nameOf(c.Client.Dialect)), Dialect(nameOf(c.Upstreams[0].Dialect))
	if from.Name() == to.Name() {
		return nil, false
	}
	path, _, _ := strings.Cut(c.Client.Path, "?")
	asked, err := from.ReadRequest(path, c.Client.Body)
	if err != nil {
		t.Errorf("%s: %v", c.ID, err)
		return nil, false
	}
	x := map[string]any{"status": 200, "type": "application/json", "sent": "", "path": ""}
	tr, err := New(from, to, asked, Options{Model: asked.Model, Now: time.Unix(1700000000, 0), ID: "req_1"})
	if err != nil {
		x["status"] = 400
		x["raw"] = base64.StdEncoding.EncodeToString(from.ErrorBody(&dialect.ErrorReport{Status: 400, Message: err.Error()}))
		return x, true
	}
	x["sent"], x["path"] = string(tr.Body()), tr.Path()
	body := c.bytes(0)
	if !asked.Stream {
		a := to.Inspect(tr.Upstream(), body)
		if a.Error || a.Malformed {
			return nil, false
		}
		out, err := tr.Answer(body)
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			return nil, false
		}
		x["raw"] = base64.StdEncoding.EncodeToString(out)
		return x, true
	}
	x["type"] = "text/event-stream"
	x["raw"] = base64.StdEncoding.EncodeToString(pump(from, to, tr, body))
	return x, true
}

// pump is what a relay does with a stream, without its timers.
func pump(from, to dialect.Dialect, tr *Translation, body []byte) []byte {
	r, judge, st := sse.NewReader(bytes.NewReader(body)), to.NewStream(tr.Upstream()), tr.Stream()
	var out []byte
	for {
		ev, err := r.Next()
		if err != nil {
			break
		}
		o := judge.Observe(ev)
		if o.Error {
			e, _ := to.ReadError(o.Envelope)
			if e.Message == "" {
				e.Message = "broken off"
			}
			return append(out, st.ErrorEvent(&dialect.ErrorReport{Code: dialect.CodeUpstreamError, Message: e.Message})...)
		}
		if o.Malformed || o.Skip {
			continue
		}
		out = append(out, st.Next(ev)...)
	}
	if !judge.Answer().Complete {
		return append(out, st.ErrorEvent(&dialect.ErrorReport{Code: dialect.CodeUpstreamError, Message: "broken off"})...)
	}
	return append(out, st.End()...)
}
