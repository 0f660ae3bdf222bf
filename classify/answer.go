package classify

import "strings"

// fact is a structural property of an answer that rules can ask for.
type fact uint64

const (
	isJSON         fact = 1 << iota // an error envelope was found
	isHTML                          // a web page
	isPlain                         // words without markup
	isEmpty                         // no body at all
	isBlank                         // only whitespace or comments: keep-alives and then nothing
	isChallenge                     // a bot check or access page of a CDN or firewall
	isApp                           // a single-page application
	isSuccess                       // the HTTP status says 2xx
	isStream                        // events
	isFirst                         // inside a stream, before content
	isMid                           // inside a stream, after content
	isCut                           // ended before its syntax or its stream did
	isDone                          // a stream that says [DONE] and nothing else
	isNoAnswer                      // a success without a choice, candidate or content block
	isHollow                        // a choice without content, tool call, refusal or output tokens
	isErrFinish                     // the answer's finish reason is an error
	isBadCall                       // the model produced a tool call that does not parse
	isBlocked                       // the prompt was blocked instead of answered
	isRelayed                       // an aggregator relays what its own upstream said
	isShape                         // the complaint points into the request: a field, a parameter, a location
	isOpaque                        // the message is a bare word: "Error"
	isBare                          // the message only restates the status: "Unauthorized"
	isLimitZero                     // the limit that was hit is zero: waiting never helps
	isDayQuota                      // a structured quota id names the day
	isMinuteQuota                   // a structured quota id names the minute or second
	isLongHint                      // the stated wait is longer than a rate limit's
	isShortHint                     // a structured wait of at most 60s is stated
	namesModel                      // the words speak of a model
	namesAccount                    // the words speak of the account, organization or key
	isRejected                      // Anthropic's unified limits say which window is used up
	isModelClaim                    // and it is a window of one model class
	isShared                        // the provider resells other providers' models
	isNamed                         // the words name the model that was asked for, or a similar id
	namesThisModel                  // the words say "this model"
	isJunk                          // a success that is JSON but no object
	isGarbled                       // events whose data is no JSON, or lines that are no events
	saysQuota                       // a code, the words or a header's name speak of a quota, a plan or a window of days
)

// answer is what was read of one attempt.
type answer struct {
	in       Input
	status   int // the HTTP status or, in a success, the one that the envelope states; 0 is none
	facts    fact
	codes    []code
	full     string // plainWords of all messages, one per line
	text     string // the same without what may be an echo of the request
	raw      []string
	hints    hints
	traits   traits
	provider string // canonical name

	healthy bool
	grams   grams
	prompt  int // prompt tokens of the usage block
}

// code is one error code, type, status or reason, in canonical spelling.
type code struct{ canon, at string }

func (a *answer) has(f fact) bool { return a.facts&f == f }
func (a *answer) set(f fact)      { a.facts |= f }
func (a *answer) setIf(f fact, b bool) {
	if b {
		a.facts |= f
	}
}

// read extracts everything that rules and hints ask for.
func read(in Input) *answer {
	a := &answer{in: in, status: in.Status, traits: traitsOf(in.Provider), provider: canonicalProvider(in.Provider)}
	a.hints.now = in.Now
	a.setIf(isSuccess, in.Status >= 200 && in.Status < 300)
	a.setIf(isFirst, in.Phase == PhaseFirstEvent)
	a.setIf(isMid, in.Phase == PhaseMidStream)
	a.setIf(isShared, a.traits.reseller)
	body := strings.ToValidUTF8(string(plainBody(in.Header, in.Body)), "\uFFFD")
	a.readBody(body, len(in.Body) > maxBody)
	if a.healthy {
		return a
	}
	a.headerCodes()
	a.finishText()
	a.hints.read(a)
	a.nameFacts()
	return a
}

// headerCodes reads the codes that some upstreams put into headers.
func (a *answer) headerCodes() {
	for _, h := range [...]string{"X-Amzn-Errortype", "X-Vercel-Error", "X-Ms-Error-Code", "X-Error-Code"} {
		if v := a.in.Header.Get(h); v != "" {
			a.addCode(v, h)
		}
	}
	if a.in.Header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" && a.status != 529 {
		a.set(isRejected)
		claim := a.in.Header.Get("Anthropic-Ratelimit-Unified-Representative-Claim")
		a.setIf(isModelClaim, strings.HasPrefix(claim, "seven_day_") || strings.HasPrefix(claim, "five_hour_"))
	}
	if strings.EqualFold(a.in.Header.Get("Cf-Mitigated"), "challenge") {
		a.set(isChallenge)
	}
}

const maxCodes = 24

func (a *answer) addCode(s, at string) {
	if len(a.codes) >= maxCodes || len(s) > 160 {
		return
	}
	if c := canonicalCode(s); c != "" {
		a.codes = append(a.codes, code{c, at})
	}
}

// canonicalCode makes codes comparable: lower case, letters and digits only; of AWS's
// "ns#TypeException:uri" the type.
func canonicalCode(s string) string {
	if i := strings.LastIndexByte(s, '#'); i >= 0 {
		s = s[i+1:]
	}
	if i := strings.Index(s, ":http"); i >= 0 {
		s = s[:i]
	}
	var buf [160]byte
	b := buf[:0]
	for i := 0; i < len(s) && len(b) < cap(b); i++ {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b = append(b, c)
		}
	}
	c := string(b)
	if t := strings.TrimSuffix(c, "exception"); t != "" {
		return t
	}
	return c
}

// addText keeps a message for matching.
func (a *answer) addText(s string) {
	if s = strings.TrimSpace(s); s == "" || len(a.raw) >= 12 {
		return
	}
	for _, r := range a.raw {
		if r == s {
			return
		}
	}
	a.raw = append(a.raw, s)
}

// finishText builds the text that rules see.
func (a *answer) finishText() {
	if len(a.raw) == 0 {
		return
	}
	n := 0
	for _, r := range a.raw {
		n += min(len(r), maxText) + 8
	}
	b := make([]byte, 0, min(n, maxAllText))
	for i, r := range a.raw {
		if len(b) > maxAllText-maxText {
			break
		}
		at := len(b)
		b = plainWords(b, r)
		if i == 0 {
			a.shapeOfMessage(string(b[at:]))
		}
		b = append(b, '\n')
	}
	a.full = string(b)
	a.text = a.full
	a.grams = gramsOf(a.text)
	switch {
	case refusesRequest(a.status) || a.status == 404:
		a.text = cutEcho(a, a.withoutShownLines(), echoIntro)
	case a.status >= 500:
		a.text = cutEcho(a, a.withoutShownLines(), parserIntro)
	}
}

// withoutShownLines is the text without the lines in which a parser shows what it was given.
func (a *answer) withoutShownLines() string {
	own := make([]string, len(a.raw))
	same := true
	for i, r := range a.raw {
		own[i] = ownLines(r)
		same = same && own[i] == r
	}
	if same {
		return a.text
	}
	b := make([]byte, 0, len(a.text))
	for _, r := range own {
		if len(b) > maxAllText-maxText {
			break
		}
		b = append(plainWords(b, r), '\n')
	}
	return string(b)
}

// bareWords are messages that say no more than the status.
var bareWords = map[string]bool{
	"unauthorized": true, "forbidden": true, "401 unauthorized": true, "403 forbidden": true, "authorization failed": true,
	"authorization required": true, "access denied": true, "not authorized": true, "unauthenticated": true,
	"authentication required": true, "401": true, "403": true, "401 authorization required": true,
}

func (a *answer) shapeOfMessage(first string) {
	t := strings.Trim(first, " .!")
	a.setIf(isOpaque, t == "error" || t == "unknown error" || t == "an error occurred")
	a.setIf(isBare, bareWords[t])
	// "messages.3.content: …", "contents[0].parts: …" point into the request.
	for _, p := range [...]string{"messages.", "messages[", "messages:", "contents[", "tools.", "tools[", "input[", "system.", "tool_choice", "body.", "body ->"} {
		if strings.HasPrefix(t, p) {
			a.set(isShape)
		}
	}
	// "… is not one of" names a value of the request, mostly without quotes.
	for _, p := range [...]string{" is not one of ", " is not a valid enum", " is not a valid value", " is not a valid type", " is not a valid role", " is not a valid choice", " is not of type ", " is not a permitted ", " is not an allowed "} {
		if strings.Contains(t, p) {
			a.set(isShape)
		}
	}
}

var (
	modelWords   = patterns("model", "models", "deployment", "endpoint", "模型", "モデル", "모델", "модел")
	accountWords = patterns("account", "organization", "organisation", "api key", "your key", "team", "project", "trial key", "workspace", "subscription", "your plan", "账户", "账号", "用户", "アカウント", "계정")
)

// nameFacts finds out whether the words speak of a model or of an account.
func (a *answer) nameFacts() {
	for _, p := range modelWords {
		if a.matches(p) {
			a.set(namesModel)
			break
		}
	}
	a.setIf(namesModel, limitsModel(a.text, a.in.Model))
	a.setIf(namesThisModel, strings.Contains(a.text, "this model"))
	for _, p := range accountWords {
		if a.matches(p) {
			a.set(namesAccount)
			break
		}
	}
	if a.has(isLongHint) && a.speaksOfQuota() {
		a.set(saysQuota)
	}
	if m := a.in.Model; len(m) > 3 {
		for _, r := range a.raw {
			if containsFold(r, m) {
				a.set(isNamed)
			}
		}
	}
}

var (
	quotaPatterns = append(patterns(quotaWords...), patterns("quota", "allowance", "your plan", "billing", "userbymodelbyday", "per 86400")...)
	quotaParts    = [...]string{"quota", "daily", "perday", "weekly", "monthly", "usagelimit", "allowance"}
)

// speaksOfQuota reports whether a code, the words, or the name of the header with the reset time
// speak of a quota. A long wait alone does not.
func (a *answer) speaksOfQuota() bool {
	for _, c := range a.codes {
		for _, part := range quotaParts {
			if strings.Contains(c.canon, part) {
				return true
			}
		}
	}
	for _, p := range quotaPatterns {
		if a.matches(p) {
			return true
		}
	}
	source := a.hints.best.source
	return a.has(isRejected) || strings.HasSuffix(source, "-day") || strings.Contains(source, "codex")
}

// limitsModel reports whether the words say that the limit "for" a model is reached without the word
// model: it is the one that was asked for, or what is no ordinary word there ("tokens", "requests"),
// since names of models have digits.
func limitsModel(text, asked string) bool {
	const phrase = "limit reached for "
	_, after, ok := strings.Cut(text, phrase)
	if !ok {
		return false
	}
	if end := strings.IndexAny(after, " \n"); end >= 0 {
		after = after[:end]
	}
	name := strings.TrimRight(after, ".,:;")
	return strings.ContainsAny(name, "0123456789") || asked != "" && strings.EqualFold(name, asked)
}

// matches reports whether the pattern is in the upstream's own words.
func (a *answer) matches(p pattern) bool { return a.matchesIn(a.text, p) }

// matchesIn is matches for one of the two texts, by the filter first.
func (a *answer) matchesIn(text string, p pattern) bool {
	if !a.grams.may(p.gram) {
		return false
	}
	return p.find(text) > 0
}

func containsFold(s, sub string) bool {
	return strings.Contains(strings.ToLower(s[:min(len(s), maxText)]), strings.ToLower(sub))
}

// grams is a filter over a text: which beginnings of patterns can be in it at all.
type grams [64]uint64

func gramsOf(s string) grams {
	var g grams
	for i := 0; i+3 <= len(s); i++ {
		h := gram(s[i], s[i+1], s[i+2])
		g[h>>6] |= 1 << (h & 63)
	}
	return g
}

func gram(a, b, c byte) uint16 {
	return uint16((uint32(a)*0x9E5 + uint32(b)*0x1F35 + uint32(c)*0x6A09) >> 2 & 0xFFF)
}

// noGram is the gram of patterns that are too short to be filtered.
const noGram = 1 << 15

func gramOf(s string) uint16 {
	if len(s) < 3 {
		return noGram
	}
	return gram(s[0], s[1], s[2])
}

func (g *grams) may(h uint16) bool { return h == noGram || g[h>>6]&(1<<(h&63)) != 0 }
