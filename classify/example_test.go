package classify_test

import (
	"fmt"
	"net/http"
	"time"

	"omniroute/classify"
)

// The same status may mean a few seconds, or an account whose credit is gone: the body tells.
func ExampleClassifier_Classify() {
	rules, err := classify.New()
	if err != nil {
		panic(err)
	}
	for _, body := range []string{
		`{"error": {"message": "Rate limit reached for requests", "type": "requests", "code": "rate_limit_exceeded"}}`,
		`{"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}}`,
	} {
		v := rules.Classify(classify.Input{
			Provider: "openai", Dialect: "openai", Model: "gpt-5.2",
			Phase: classify.PhaseHeaders, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"20"}}, Body: []byte(body),
			Now: time.Now(),
		})
		fmt.Println(v.Scope, v.Kind, v.RetryAfter, "quarantine:", v.Quarantine)
	}
	// Output:
	// connection rate_limit 20s quarantine: false
	// connection billing 0s quarantine: true
}
