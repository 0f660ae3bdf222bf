package sdk

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// callTime bounds one call of a client. It is far above what any test expects.
const callTime = time.Minute

func runGo(t *testing.T, c call) []result {
	t.Helper()
	// A transport of its own, so that no test waits for another's connections.
	transport := &http.Transport{MaxIdleConnsPerHost: c.concurrency}
	defer transport.CloseIdleConnections()
	sdk := openai.NewClient(
		option.WithBaseURL(c.baseURL),
		option.WithAPIKey(c.key),
		option.WithMaxRetries(0), // a retry in here would hide what the gateway failed to do
		option.WithHTTPClient(&http.Client{Transport: transport}),
	)
	results := make([]result, c.n)
	next := make(chan int)
	var workers sync.WaitGroup
	for range c.concurrency {
		workers.Go(func() {
			for i := range next {
				results[i] = callGo(t.Context(), sdk, c, i)
			}
		})
	}
	for i := range c.n {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

func callGo(ctx context.Context, sdk openai.Client, c call, i int) result {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	started := time.Now()
	r := result{I: i}
	params := openai.ChatCompletionNewParams{
		Model:    c.model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	}
	var resp *http.Response
	var err error
	if c.stream {
		err = streamGo(ctx, sdk, params, &r, &resp)
	} else {
		var answer *openai.ChatCompletion
		answer, err = sdk.Chat.Completions.New(ctx, params, option.WithResponseInto(&resp))
		if err == nil {
			r.Text, r.Finish = answer.Choices[0].Message.Content, answer.Choices[0].FinishReason
		}
	}
	r.Ms = time.Since(started).Milliseconds()
	if resp != nil {
		r.Provider = resp.Header.Get("X-Omniroute-Provider")
		r.Connection = resp.Header.Get("X-Omniroute-Connection")
		r.Attempts = resp.Header.Get("X-Omniroute-Attempts")
	}
	r.OK = err == nil
	if err != nil {
		r.Error = err.Error()
		if api := (*openai.Error)(nil); errors.As(err, &api) {
			r.Status, r.Code = api.StatusCode, api.Code
		}
	}
	return r
}

func streamGo(ctx context.Context, sdk openai.Client, params openai.ChatCompletionNewParams, r *result, resp **http.Response) error {
	s := sdk.Chat.Completions.NewStreaming(ctx, params, option.WithResponseInto(resp))
	defer s.Close()
	var text strings.Builder
	for s.Next() {
		for _, choice := range s.Current().Choices {
			if choice.Delta.Content != "" {
				text.WriteString(choice.Delta.Content)
				r.Chunks++
			}
			if choice.FinishReason != "" {
				r.Finish = choice.FinishReason
			}
		}
	}
	r.Text = text.String()
	return s.Err()
}
