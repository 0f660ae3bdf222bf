package lab_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"omniroute/internal/lab"
)

// What the provider itself costs, to be taken off what a gateway's benchmark measures.
func BenchmarkProvider(b *testing.B) {
	for name, stream := range map[string]string{"plain": "false", "stream": "true"} {
		b.Run(name, func(b *testing.B) {
			p := lab.New(lab.Options{Text: sentence})
			body := `{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"hello"}]}`
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				p.ServeHTTP(w, httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body)))
				if w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
