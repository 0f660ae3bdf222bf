package classify

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniroute/resilience"
)

var update = flag.Bool("update", false, "rewrite ../docs/errors.md from the rules")

// TestErrorsDoc guards that docs/errors.md says what the rules do.
func TestErrorsDoc(t *testing.T) {
	path := filepath.Join("..", "docs", "errors.md")
	want := errorsDoc(classifier(t))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with: go generate ./classify", err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/errors.md is not what the rules say; write it anew with: go generate ./classify")
	}
}

const docHead = `# Errors and what is made of them

This page is generated from the rules in ` + "`classify`" + `; a test keeps it true.

Every failed attempt is read once, by one classifier. The first rule that matches gives the verdict: its scope (whom it is held
against), its kind, and what follows. Operator rules (` + "`error_rules`" + ` in the configuration) come before all of these, in the order in
which they are written. A rule matches when all of its conditions hold; of several codes or texts, one is enough.

- **code** is an error code, type, status or reason inside the error envelope (or ` + "`x-amzn-errortype`" + ` and its like). Case, ` + "`_`, `-`" + `,
  spaces and a final "Exception" do not count; ` + "`*`" + ` at an end matches anything.
- **text** is the envelope's own message, from the start of a word; ` + "`*`" + ` stands for anything within a sentence, a leading
  ` + "`^`" + ` for the beginning of a message, a final ` + "`$`" + ` for the end of a word. What the upstream puts in quotes, an echoed prompt and model output are never looked at.
- **status** is the HTTP status; inside a success, the status that the error envelope states. ` + "`2xx`" + ` is a success that states none.
- **person**: a connection is quarantined, a model locked at once, since waiting does not help.
- **rate scope**: the model where the words name one, else ` + "`rate_limit_scope`" + ` of the provider, else what is known of the provider,
  else the connection. **load scope**: the model where the words name one, else the provider (the model, where a provider serves many).
- A rate limit with a stated wait above ten minutes is reported as ` + "`quota_exhausted`" + ` where a code, the words or a header's name speak of a
  quota; words about a quota with a shorter one as ` + "`rate_limit`" + `.

Stated waits are taken from ` + "`retry-after-ms`, `retry-after`" + `, fields of the body, the message, and the reset headers of a bucket that is
used up, in this order. A wait in the past and a negative one are ignored; one above 31 days counts only where no other is stated, up to the
cap of its kind (` + "`hints`" + `). The evidence says so.

` + "`omniroute classify`" + ` shows which rule a given answer reaches.

`

func errorsDoc(c *Classifier) []byte {
	var b bytes.Buffer
	b.WriteString(docHead)
	for _, g := range []struct {
		title string
		rules []Rule
	}{
		{"Single providers' quirks", providerRules}, {"Single providers' codes", plainCodeRules}, {"Successes that are none", answerRules},
		{"Proxies, CDNs and networks", edgeRules}, {"Google's quotas", googleRules}, {"The request", requestRules}, {"Relayed errors", relayRules},
		{"Codes", codeRules}, {"Complaints about the request's form", shapeRules}, {"Words", wordRules}, {"Weak codes", faultRules}, {"Defaults by status", defaultRules},
	} {
		fmt.Fprintf(&b, "## %s\n\n| rule | reads | verdict | because |\n| --- | --- | --- | --- |\n", g.title)
		for _, r := range g.rules {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.ID, conditions(r), verdictOf(c, r), cell(r.Why))
		}
		b.WriteString("\n")
	}
	b.WriteString(transportDoc)
	return b.Bytes()
}

const transportDoc = `## Attempts that ended without an answer

| rule | what happened | verdict |
| --- | --- | --- |
| ` + "`transport.local`" + ` | out of files, buffers or ports; a write to the client failed | local, neutral |
| ` + "`transport.canceled`" + ` | the client went away | client, neutral |
| ` + "`transport.deadline`" + ` | the request's own deadline | local, neutral |
| ` + "`transport.dns`, `.refused`, `.unreachable`, `.proxy`, `.dial`" + ` | no connection came about, so nothing was sent | provider/network |
| ` + "`transport.dial_timeout`" + ` | the same, by a timer | provider/timeout |
| ` + "`transport.tls`" + ` | the handshake failed | provider/network; a certificate that does not verify is not tried again |
| ` + "`transport.timeout`" + ` | ` + "`first_token_timeout`, `idle_timeout`" + ` and the like ran out | provider/timeout |
| ` + "`transport.closing`, `.http2`, `.reset`, `.cut`" + ` | GOAWAY, a refused or broken stream, a reset, an answer that ended early | provider/network |
| ` + "`transport.protocol`" + ` | what came is not HTTP | provider/malformed_response |
| ` + "`transport.unknown`" + ` | anything else | provider/network |
`

// conditions spells a rule's conditions out.
func conditions(r Rule) string {
	var parts []string
	add := func(name string, vs []string) {
		if len(vs) > 0 {
			for i, v := range vs {
				vs[i] = "`" + v + "`"
			}
			parts = append(parts, name+" "+strings.Join(vs, ", "))
		}
	}
	add("provider", append([]string(nil), r.Provider...))
	var st []string
	for _, s := range r.Status {
		st = append(st, s.String())
	}
	add("status", st)
	if s := factWords(r.facts); s != "" {
		parts = append(parts, s)
	}
	if s := factWords(r.absent); s != "" {
		parts = append(parts, "not "+s)
	}
	add("code", append([]string(nil), r.Code...))
	add("text", append([]string(nil), r.Text...))
	add("but not", append([]string(nil), r.Not...))
	if r.Header != "" {
		add("header", []string{r.Header})
	}
	if len(parts) == 0 {
		return "anything"
	}
	return cell(strings.Join(parts, "; "))
}

var factNames = []struct {
	f    fact
	name string
}{
	{isJSON, "an error envelope"}, {isHTML, "a web page"}, {isPlain, "plain text"}, {isEmpty, "no body"}, {isBlank, "only blanks or comments"}, {isChallenge, "a bot check"}, {isApp, "a web application"},
	{isSuccess, "a success status"}, {isStream, "events"}, {isCut, "cut short"}, {isDone, "only `[DONE]`"}, {isNoAnswer, "no choice"}, {isHollow, "no content"}, {isErrFinish, "finish reason `error`"},
	{isBadCall, "a malformed tool call"}, {isBlocked, "a block reason"}, {isRelayed, "relayed from another upstream"}, {isShape, "a field of the request named"}, {isOpaque, "only the word \"Error\""}, {isBare, "only the status in words"},
	{isLimitZero, "a quota of 0"}, {isDayQuota, "a per-day quota id"}, {isLongHint, "a wait above ten minutes"}, {isRejected, "`anthropic-ratelimit-unified-status: rejected`"}, {isModelClaim, "a claim of one model class"}, {isJunk, "JSON but no object"}, {isGarbled, "no events of any dialect"}, {namesThisModel, "\"this model\""},
}

func factWords(f fact) string {
	var ws []string
	for _, n := range factNames {
		if f&n.f != 0 {
			ws = append(ws, n.name)
		}
	}
	return strings.Join(ws, ", ")
}

// verdictOf describes what the rule's own example gets.
func verdictOf(c *Classifier, r Rule) string {
	e := r.Examples[0]
	if e.Provider == "" && len(r.Provider) > 0 {
		e.Provider = r.Provider[0]
	}
	v := c.Classify(e.input())
	scope := r.Scope.String()
	switch r.by {
	case byRate:
		scope = "rate scope"
	case byLoad:
		scope = "load scope"
	case byResource:
		scope += ", model if named"
	case byFault:
		scope += ", model behind a reseller"
	}
	s := scope + " / " + r.Kind.String()
	if v.Quarantine || v.Certain {
		s += ", person"
	}
	switch {
	case v.Scope == resilience.ScopeClient:
		s += ", fails everywhere"
	case v.RetrySame:
		s += ", may be tried here again"
	}
	if r.window != "" {
		s += ", until the end of the " + strings.Replace(r.window, ":", " of ", 1)
	}
	return s
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
