package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"omniroute/internal/gateway/gatewaytest"
)

// labelled answers with those headers, in pairs.
func labelled(status int, body string, headers ...string) raw {
	return func(w http.ResponseWriter, _ func(), _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header()[headers[i]] = []string{headers[i+1]}
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// TestWronglyLabelledAnswer: an answer that is called something else is one, and the client, whose reader goes by the
// content type, hears what it is. Some servers write names into Content-Encoding that say of no encoding.
func TestWronglyLabelledAnswer(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]string{
		{"Content-Type", "text/plain"},
		{"Content-Type", ""},
		{"Content-Type", "text/html; charset=utf-8"},
		{"Content-Type", "application/json", "Content-Encoding", "utf-8"},
		{"Content-Type", "application/json", "Content-Encoding", "None"},
		{"Content-Type", "application/json", "Content-Encoding", "aws-chunked"},
	} {
		t.Run(strings.Join(headers, " "), func(t *testing.T) {
			t.Parallel()
			shaped(t, labelled(200, wholeChat, headers...), func(t *testing.T, w *gatewaytest.World) {
				a := w.Chat(t.Context(), "m", false)
				if a.Status != 200 || a.Text != "All of it." || a.Header.Get("X-Omniroute-Provider") != "u" ||
					a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Content-Encoding") != "" {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

// TestRefusalInPlainWords: what an upstream says in a short text reaches the client, and a page does not.
func TestRefusalInPlainWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		u    raw
		want string
	}{
		"words":   {labelled(400, "temperature must be below 2\n", "Content-Type", "text/plain"), "temperature must be below 2"},
		"a page":  {labelled(400, "<html><body>temperature</body></html>", "Content-Type", "text/html"), "The upstream refused the request"},
		"no text": {labelled(400, "\x00\x01 temperature", "Content-Type", "application/octet-stream"), "The upstream refused the request"},
		"a book":  {labelled(400, strings.Repeat("temperature ", 100), "Content-Type", "text/plain"), "The upstream refused the request"},
		"a list":  {labelled(400, `{"success":false,"errors":[{"code":5006,"message":"messages is required"}]}`, "Content-Type", "application/json"), "messages is required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shaped(t, c.u, func(t *testing.T, w *gatewaytest.World) {
				if a := w.Chat(t.Context(), "u/m", false); a.Status < 400 || a.Status > 499 || !strings.Contains(a.Body, `"message":"`+c.want) {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			})
		})
	}
}
