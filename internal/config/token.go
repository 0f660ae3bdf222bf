package config

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// tokens are texts that look like a key or token wherever they stand, so that one which slipped into a name, a tag or
// an alias is not shown either: what vendors' keys begin with, and runs of letters and digits that no name has.
var tokens = regexp.MustCompile(`\b(?:(?:sk[-_]|gsk_|xai-|hf_|nvapi-|r8_|pplx-|csk-|fw_|tgp_|gh[oprsu]_|github_pat_|glpat-|AIza|AKIA|eyJ)[A-Za-z0-9_.-]{9,}|or-[A-Za-z0-9_-]{43}|[A-Za-z0-9]{24,})`)

// likeToken reports whether a match is one: a key has digits and letters, and a run of either alone is a word or a number.
func likeToken(match string) bool {
	return strings.ContainsAny(match, "0123456789") && strings.Trim(match, "0123456789") != ""
}

// withoutTokens puts *** in place of what looks like a token. A part of a path is none: it may be a folder's hash, and
// without it nobody finds the file.
func withoutTokens(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range tokens.FindAllStringIndex(text, -1) {
		if likeToken(text[m[0]:m[1]]) && (m[0] == 0 || text[m[0]-1] != '/') {
			b.WriteString(text[at:m[0]] + "***")
			at = m[1]
		}
	}
	return b.String() + text[at:]
}

// tokenSpans returns where in a line of the file a text stands that looks like a token.
func tokenSpans(line string) []span {
	var spans []span
	for _, m := range tokens.FindAllStringIndex(line, -1) {
		if likeToken(line[m[0]:m[1]]) {
			spans = append(spans, span{utf8.RuneCountInString(line[:m[0]]) + 1, utf8.RuneCountInString(line[:m[1]]) + 1})
		}
	}
	return spans
}
