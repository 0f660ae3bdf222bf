package classify

import (
	"regexp"
	"strings"
)

// secrets are what Redact removes: keys, tokens, ids, addresses and the query part of URLs.
var secrets = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?i)(bearer|basic|token|authorization:?)\s+[A-Za-z0-9+/._~=-]{8,}`), "$1 ***"},
	{regexp.MustCompile(`\b(sk|pk|rk|ak|gsk|xai|hf|org|proj|user|req|key|nvapi|r8|pplx|csk|ghp|gho|ghu|AIza|AKIA|ASIA|eyJ)[-_A-Za-z0-9]*[-_.]?[A-Za-z0-9_*.-]{10,}`), "$1***"},
	{regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`), "***@***"},
	{regexp.MustCompile(`(https?://[^\s"'?#<>\\]+)[?#][^\s"'<>\\]*`), "$1"},
	{regexp.MustCompile(`(https?://)[^\s"'/@]+@`), "$1***@"},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "***"},
	{regexp.MustCompile(`\b[0-9a-fA-F]{24,}\b`), "***"},
	{regexp.MustCompile(`\b[A-Za-z0-9+/_-]{40,}={0,2}`), "***"},
	{regexp.MustCompile(`(?i)("(?:api[_-]?key|access[_-]?token|secret|password|authorization|token|cookie)"\s*:\s*")[^"]*`), "$1***"},
	{regexp.MustCompile(`(?i)\b((?:access_|refresh_)?token|api[_-]?key|key|secret|password|passwd|signature|session)=[^\s"&<>]+`), "$1=***"},
	{regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`), "*.*.*.*"},
}

// Redact removes from text what may be a secret or name a person: keys, tokens, account ids,
// mail and IP addresses, and URL queries.
func Redact(s string) string {
	for _, r := range secrets {
		s = r.re.ReplaceAllString(s, r.with)
	}
	return s
}

// redactCode guards evidence against an upstream that puts a key where a code belongs.
func redactCode(c string) string {
	if len(c) > 64 || strings.HasPrefix(c, "sk") && len(c) > 20 {
		return "***"
	}
	return c
}
