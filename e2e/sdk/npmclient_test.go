package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// npmTime bounds one run of the script, all its calls together.
const npmTime = 3 * time.Minute

// findNode returns the path of node. It skips the test where node or an SDK is not installed, but
// not where CI is set: there nothing may be left out unseen.
func findNode(t *testing.T) string {
	t.Helper()
	leaveOut := t.Skipf
	if os.Getenv("CI") != "" {
		leaveOut = t.Fatalf
	}
	node, err := exec.LookPath("node")
	if err != nil {
		leaveOut("node is not installed: %v", err)
	}
	for _, sdk := range []string{"openai", "@anthropic-ai/sdk"} {
		if _, err := os.Stat("../npm/node_modules/" + sdk); err != nil {
			leaveOut("a JavaScript SDK is not installed; run npm ci in e2e/npm: %v", err)
		}
	}
	return node
}

func runNPM(t *testing.T, c call) []result {
	t.Helper()
	node := findNode(t)
	args := []string{
		"chat.mjs",
		"--base-url", c.baseURL, "--key", c.key, "--model", c.model,
		"--n", strconv.Itoa(c.n), "--concurrency", strconv.Itoa(c.concurrency),
		"--timeout-ms", strconv.FormatInt(callTime.Milliseconds(), 10),
	}
	if c.stream {
		args = append(args, "--stream")
	}
	ctx, cancel := context.WithTimeout(t.Context(), npmTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Dir = "../npm"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chat.mjs: %v\n%s%s", err, out, stderr.String())
	}
	var results []result
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var r result
		err := dec.Decode(&r)
		if errors.Is(err, io.EOF) {
			return results
		}
		if err != nil {
			t.Fatalf("chat.mjs printed what is no result: %v\n%s", err, out)
		}
		results = append(results, r)
	}
}
