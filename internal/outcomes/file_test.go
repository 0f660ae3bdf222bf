package outcomes

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	at    = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	story = telemetry.Story{
		ID: "req_1", At: at, Model: "chat", Route: "chat", Dialect: "openai", Stream: true, Status: 200, Duration: 3 * time.Second, FirstContent: 700 * time.Millisecond,
		Usage: dialect.Usage{Known: true, Input: 10, Output: 20},
		Attempts: []failover.Record{
			{Key: resilience.Key{Provider: "a", Connection: "1", Model: "m"}, At: at, Outcome: failover.OutcomeFailed, Status: 429, Duration: 50 * time.Millisecond,
				Verdict: resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 30 * time.Second, RetryElsewhere: true, Rule: "r",
					Evidence: "the upstream's words, which may repeat a prompt"}},
			{Key: resilience.Key{Provider: "b", Connection: "1", Model: "m"}, At: at.Add(50 * time.Millisecond), Outcome: failover.OutcomeAnswered, Status: 200,
				FirstContent: 650 * time.Millisecond, Duration: 2950 * time.Millisecond},
		},
	}
)

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	w, err := Open(path, 1<<20, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.Observe(story)
	w.Observe(telemetry.Story{At: at, Model: "nobody's", Status: 404})
	w.Close()
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := Of(story)
	if diff := cmp.Diff(Recording{Lines: []Line{want}}, got); diff != "" {
		t.Error(diff)
	}
	if v := got.Lines[0].Attempts[0].Verdict.Resilience(10 * time.Second); v.RetryAfter != 20*time.Second || v.Kind != resilience.KindRateLimit || !v.RetryElsewhere {
		t.Errorf("ten seconds later the verdict is %+v", v)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "upstream's words") {
		t.Errorf("the upstream's words are recorded: %s (%v)", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}

// The file and the one before it stay within the bound, and what is left is the newest.
func TestBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	const most = 20 << 10
	w, err := Open(path, most, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	for i := range n {
		s := story
		s.At = at.Add(time.Duration(i) * time.Second)
		for w.Lost() > 0 {
			t.Fatal("lines were lost")
		}
		w.Observe(s)
	}
	w.Close()
	var size int64
	for _, name := range []string{path, path + ".1"} {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	if size > most || size < most/2 {
		t.Errorf("%d bytes are kept, of at most %d", size, most)
	}
	rec, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := rec.Lines
	if last := lines[len(lines)-1].At; !last.Equal(at.Add((n - 1) * time.Second)) {
		t.Errorf("the newest line is of %v", last)
	}
	for i := range lines[1:] {
		if !lines[i+1].At.After(lines[i].At) {
			t.Fatalf("line %d is older than the one before", i+1)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if _, err := Read(path); err == nil {
		t.Error("a file that is not there is read")
	}
	for text, want := range map[string]string{"{}\n": "holds no recorded outcome", "hello\n": "holds no recorded outcome", "": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A line that a crash cut off costs itself alone, when the gateway goes on in the same file too.
func TestCutByACrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(`{"at":"2026-03-04T05:06:07Z","model":"m","status":200,"took_ms":1}`+"\n"+`{"at":"2026-`), 0o600); err != nil {
		t.Fatal(err)
	}
	if rec, err := Read(path); err != nil || len(rec.Lines) != 1 || rec.Unreadable != 1 {
		t.Errorf("%+v, %v; want the whole line", rec, err)
	}
	for range 2 { // the second one finds a whole line before it
		w, err := Open(path, 1<<20, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		w.Observe(story)
		w.Close()
	}
	if rec, err := Read(path); err != nil || len(rec.Lines) != 3 || rec.Unreadable != 1 {
		t.Errorf("%+v, %v; want the whole line and two new ones", rec, err)
	}
}

// What another version has written is read as far as it is understood.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	text := `{"at":"2026-03-04T05:06:07Z","model":"m","status":200,"took_ms":1,"region":"of a later version"}
{"at":"2026-03-04T05:06:08Z","model":"m","status":500,"took_ms":1,"attempts":[{"provider":"p","outcome":"failed","verdict":{"scope":"galaxy","kind":"server_error"}}]}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if rec, err := Read(path); err != nil || len(rec.Lines) != 1 || rec.Unreadable != 1 {
		t.Errorf("%+v, %v; want the first line", rec, err)
	}
}

// A file that cannot make room for a new one does not grow on.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	const most = 4 << 10
	w, err := Open(path, most, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		w.Observe(story)
	}
	w.Close()
	if info, err := os.Stat(path); err != nil || info.Size() > most/2 || w.Lost() == 0 {
		t.Errorf("%d bytes of at most %d, %d lost, %v", info.Size(), most/2, w.Lost(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Open(filepath.Join(t.TempDir(), "no", "such", "folder"), 1, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a folder that is not there is no error")
	}
}
