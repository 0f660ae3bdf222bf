package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"testing"

	"omniroute/e2e/upstream"
)

// npmAgent runs npm/matrix.mjs with all jobs at once.
func npmAgent(api string) func(*testing.T, string, []job) []outcome {
	return func(t *testing.T, base string, jobs []job) []outcome {
		t.Helper()
		node := findNode(t)
		type tool struct {
			Name        string         `json:"name"`
			Description string         `json:"description"`
			Schema      map[string]any `json:"schema"`
			Result      string         `json:"result"`
		}
		var all []tool
		for _, d := range tools {
			all = append(all, tool{d.name, d.description, object(d.properties, d.required), resultOf(d.name)})
		}
		task, err := json.Marshal(map[string]any{
			"api": api, "base": base, "key": clientKey, "jobs": jobs, "timeout": callTime.Milliseconds(),
			"system": upstream.System, "prompt": upstream.Prompt, "pixel": upstream.Pixel, "schema": answerSchema, "tools": all,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), npmTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, node, "matrix.mjs")
		cmd.Dir = "../npm"
		cmd.Stdin = bytes.NewReader(task)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("matrix.mjs: %v\n%s%s", err, out, stderr.String())
		}
		var outcomes []outcome
		if err := json.Unmarshal(out, &outcomes); err != nil {
			t.Fatalf("matrix.mjs printed what is no list of outcomes: %v\n%s", err, out)
		}
		return outcomes
	}
}
