package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Client asks one gateway. It is safe for concurrent use.
type Client struct {
	url       string
	key       string
	transport *http.Transport
	timeout   time.Duration
	sent      atomic.Uint64
}

// NewClient returns a client of the gateway at url ("http://127.0.0.1:20128"), with a client key
// where the gateway wants one.
func NewClient(url, key string) *Client {
	return &Client{
		url: url + "/v1/chat/completions", key: key, timeout: 2 * time.Minute,
		transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			MaxIdleConnsPerHost: 4096,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
	}
}

// Close ends the client's idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Open opens a streamed request and returns once its first content is there. The stream stays
// open until the function that is returned is called.
func (c *Client) Open(ctx context.Context, body []byte) (closeIt func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.send(ctx, body)
	if err != nil {
		cancel()
		return nil, err
	}
	end := func() { cancel(); resp.Body.Close() }
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		end()
		return nil, fmt.Errorf("%s: %s", resp.Status, text)
	}
	// A small buffer of its own: a thousand open streams must not weigh on the generator.
	buf := make([]byte, 2048)
	for {
		n, err := resp.Body.Read(buf)
		if hasContent(buf[:n]) {
			return end, nil
		}
		if err != nil {
			end()
			return nil, fmt.Errorf("the stream ended before its first content: %w", err)
		}
	}
}

func (c *Client) send(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["X-Request-Id"] = []string{"bench-" + strconv.FormatUint(c.sent.Add(1), 10)}
	if c.key != "" {
		req.Header["Authorization"] = []string{"Bearer " + c.key}
	}
	return c.transport.RoundTrip(req)
}

// ask sends one request that was due at a time and fills in what came of it.
func (c *Client) ask(ctx context.Context, stream bool, body []byte, due time.Time, s *Sample) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s.Late = time.Since(due)
	resp, err := c.send(ctx, body)
	if err != nil {
		s.Total, s.Err = time.Since(due), "no answer: "+err.Error()
		return
	}
	defer resp.Body.Close()
	s.Status = resp.StatusCode
	s.Provider, s.Attempts = resp.Header.Get("X-Omniroute-Provider"), resp.Header.Get("X-Omniroute-Attempts")
	switch {
	case resp.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
		s.Err = fmt.Sprintf("%s: %s", resp.Status, text)
	case stream:
		s.stream(resp.Body, due)
	default:
		s.whole(resp.Body, due)
	}
	s.Total = time.Since(due)
}

// whole reads a plain answer. Its first content is its end.
func (s *Sample) whole(body io.Reader, due time.Time) {
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	if _, err := buf.ReadFrom(body); err != nil {
		s.Err = "cut: " + err.Error()
		return
	}
	s.First = time.Since(due)
	if !bytes.Contains(buf.Bytes(), []byte(`"choices"`)) {
		s.Err = "no completion: " + string(buf.Bytes()[:min(buf.Len(), 200)])
	}
}

// stream reads an answer event by event.
func (s *Sample) stream(body io.Reader, due time.Time) {
	r := readers.Get().(*bufio.Reader)
	defer readers.Put(r)
	r.Reset(body)
	var last time.Time
	done := false
	for {
		line, err := r.ReadSlice('\n')
		data, isData := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case !isData:
		case bytes.HasPrefix(data, []byte("[DONE]")):
			done = true
		case bytes.Contains(data, []byte(`"error":`)):
			s.Err = "an error in the stream: " + string(data[:min(len(data), 500)])
		case hasContent(data):
			now := time.Now()
			if s.Pieces == 0 {
				s.First = now.Sub(due)
			} else {
				s.Gap = max(s.Gap, now.Sub(last))
			}
			last = now
			s.Pieces++
		}
		if err == nil || errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		switch {
		case s.Err != "":
		case err != io.EOF:
			s.Err = "cut: " + err.Error()
		case !done:
			s.Err = "the stream has no terminator"
		case s.Pieces == 0:
			s.Err = "the stream has no content"
		}
		return
	}
}

// hasContent reports whether one of some events has a text that is not empty.
func hasContent(data []byte) bool {
	for {
		_, text, ok := bytes.Cut(data, []byte(`"content":"`))
		if !ok || len(text) > 0 && text[0] != '"' {
			return ok && len(text) > 0
		}
		data = text
	}
}

var (
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}
)
