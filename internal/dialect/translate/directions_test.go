package translate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

// compare reads what an upstream said and what a client of each other dialect got of it, and says where they differ.
const compare = `
import sys, json, base64
sys.path.insert(0, sys.argv[1])
import view as V
def read(d, kind, raw): return V.view(d, 200, {'content-type': kind}, base64.b64decode(raw))
for line in sys.stdin:
    x = json.loads(line); up = read(x['up'], x['type'], x['said']); bad = []
    for client, raw in x['heard'].items():
        v = read(client, x['type'], raw)
        def want(what, a, b):
            if a != b: bad.append([client, what, str(a)[:300], str(b)[:300]])
        want('violations', [], v['violations'])
        if up['midstream_error'] or not up['terminated'] and x['type'] != 'application/json':
            want('failure', True, bool(v['midstream_error'])); continue
        want('text', up['text'] + up['refusal'], v['text'] + v['refusal'])
        want('reasoning', ''.join(up['reasoning'].split()), ''.join(v['reasoning'].split()))
        want('calls', [(t['name'], t['args']) for t in up['tool_calls']], [(t['name'], t['args']) for t in v['tool_calls']])
        finish = V.native_finish(client, V.norm_finish(x['up'], up))
        if finish and v['finish'] not in finish and not up['refusal']: want('finish', finish, v['finish'])
        for k in ('input', 'output', 'cached'):
            if up['usage'].get(k) is not None: want('usage ' + k, up['usage'][k], v['usage'].get(k))
    print(json.dumps(dict(id=x['id'], bad=bad)))
`

// TestCasesInEveryDirection puts what the upstreams of all cases say to clients of every other dialect, whoever asked in
// the case, as it was recorded and with the members in another order: they have the same text, thoughts, calls, ending and usage, and no fault of framing.
func TestCasesInEveryDirection(t *testing.T) {
	t.Parallel()
	dir := dialectCases(t)
	var lines bytes.Buffer
	seen := map[string]bool{}
	for _, c := range readCases(t, dir) {
		name, _, _ := strings.Cut(c.ID, "__")
		if len(c.Upstreams) != 1 || c.Upstreams[0].Status != 200 || c.Upstreams[0].Headers["content-encoding"] != "" || seen[name] || !strings.HasPrefix(c.Client.Path, "/v1") {
			continue
		}
		seen[name] = true
		for _, other := range []bool{false, true} {
			if other && len(c.bytes(0)) > 1<<20 { // cases about long lines
				continue
			}
			if x := heard(t, c, name, other); x != nil {
				line, _ := json.Marshal(x)
				lines.Write(append(line, '\n'))
			}
		}
	}
	cmd := exec.Command("python3", "-B", "-c", compare, dir)
	cmd.Stdin, cmd.Stderr = &lines, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var r struct {
			ID  string
			Bad [][]string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if disputed[r.ID+"__chat"] != "" || unfinished[r.ID] {
			continue
		}
		for _, b := range r.Bad {
			t.Errorf("%s to %s: %s: want %s, got %s", r.ID, b[0], b[1], b[2], b[3])
		}
	}
}

// unfinished are streams that the reader of the cases takes for cut, since their last bytes are missing. They have their finish
// reason, and are whole (law S4).
var unfinished = map[string]bool{"frame-no-done-chat": true, "frame-no-final-blank-anthropic": true}

// reordered writes the members of every JSON text in another order, and a null and a thing that nobody knows among them.
func reordered(said []byte, stream bool) []byte {
	again := func(text []byte) []byte {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		var m map[string]any
		if dec.Decode(&m) != nil {
			return text
		}
		m["a_new"], m["zz_new"] = nil, map[string]any{"text": "no", "content": "no", "delta": "no"}
		out, err := json.Marshal(m)
		if err != nil {
			return text
		}
		return out
	}
	if !stream {
		return again(said)
	}
	var out []byte
	r := sse.NewReader(bytes.NewReader(said))
	for ev, err := r.Next(); err == nil; ev, err = r.Next() {
		if !ev.HasData {
			out = append(out, ev.Raw...)
			continue
		}
		out = sse.Append(out, string(ev.Name), again(ev.Data))
	}
	return out
}

// heard returns what clients of other dialects hear of a case's upstream, nil when that is no answer.
func heard(t *testing.T, c *dialectCase, name string, other bool) map[string]any {
	t.Helper()
	words := map[string]string{"chat": "openai", "responses": "responses", "anthropic": "anthropic", "gemini": "gemini"}
	up, said := c.Upstreams[0].Dialect, c.bytes(0)
	to := Dialect(words[up])
	kind := "application/json"
	if strings.Contains(strings.ToLower(c.Upstreams[0].Headers["content-type"]), "event-stream") {
		kind = "text/event-stream"
	}
	got := map[string]string{}
	for client, word := range words {
		from := Dialect(word)
		if client == up {
			continue
		}
		asked := &dialect.Request{Path: "/v1/chat/completions", Stream: kind != "application/json", IncludeUsage: true,
			Body: []byte(`{"model":"m","messages":[{"role":"user","content":"q"}],"input":"q","max_tokens":5,"contents":[{"parts":[{"text":"q"}]}]}`)}
		tr, err := New(from, to, asked, Options{Model: "m-1", Now: time.Unix(1700000000, 0), ID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		said := said
		if other {
			said = reordered(said, asked.Stream)
		}
		if asked.Stream {
			got[client] = base64.StdEncoding.EncodeToString(pump(from, to, tr, said))
			continue
		}
		if a := to.Inspect(tr.Upstream(), said); a.Error || a.Malformed {
			return nil
		}
		out, err := tr.Answer(said)
		if err != nil {
			t.Errorf("%s to %s: %v", name, client, err)
			continue
		}
		got[client] = base64.StdEncoding.EncodeToString(out)
	}
	return map[string]any{"id": name, "up": up, "type": kind, "said": base64.StdEncoding.EncodeToString(said), "heard": got}
}
