package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sample"
	"omniroute/internal/dialect/sse"
	"omniroute/internal/dialect/translate"
)

// translateIDs names a row for every client's dialect and every other one of an upstream's.
func translateIDs() []string {
	var out []string
	for _, client := range sample.Dialects {
		for _, upstream := range sample.Dialects {
			if client != upstream {
				out = append(out, translateID(client, upstream))
			}
		}
	}
	return out
}

func translateID(client, upstream string) string { return "translate-" + client + "-" + upstream }

// translate measures what a request costs on its way into another dialect, and a chunk of text on its way back. It runs in this
// process, on one core, and takes the best of many rounds: what the code needs, not what else the machine does.
func (b *bench) translate(ctx context.Context) ([]Row, error) {
	var made []Row
	for _, client := range sample.Dialects {
		for _, upstream := range sample.Dialects {
			id := translateID(client, upstream)
			if client == upstream || !b.wanted([]string{id}) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return made, err
			}
			row, err := b.translateRow(id, translate.Dialect(client), translate.Dialect(upstream))
			if err != nil {
				return made, err
			}
			made = append(made, row)
		}
	}
	return made, nil
}

func (b *bench) translateRow(id string, client, upstream dialect.Dialect) (Row, error) {
	options := translate.Options{Model: "m-1", Now: time.Unix(0, 0), ID: "r"}
	asked, err := agentIn(client)
	if err != nil {
		return Row{}, err
	}
	t, err := translate.New(client, upstream, asked, options)
	if err != nil {
		return Row{}, err
	}
	rounds := pick(b, 40, 8)
	request := fastest(rounds, 5, func() { _, err = translate.New(client, upstream, asked, options) })
	if err != nil {
		return Row{}, err
	}
	ev, err := sse.NewReader(strings.NewReader(sample.Chunk(upstream.Name()))).Next()
	if err != nil {
		return Row{}, err
	}
	st, said := t.Stream(), 0
	chunk := fastest(rounds, 2000, func() { said = len(st.Next(ev)) })
	row := Row{ID: id, What: fmt.Sprintf("translating a %d KiB request from %s to %s, and a chunk back", len(asked.Body)>>10, client.Name(), upstream.Name()),
		Ours:  fmt.Sprintf("%s a request, %.2f µs a chunk", micros(slices.Min(request)), float64(slices.Min(chunk).Nanoseconds())/1e3),
		Value: float64(slices.Min(request).Nanoseconds()) / 1e6, Unit: "ms", Info: true,
		Raw: map[string][]time.Duration{"request_ns": request, "chunk_ns": chunk}}
	if said == 0 {
		row.Failed = "a chunk came to nothing"
	}
	return row, nil
}

// fastest returns what one call took in each round of several.
func fastest(rounds, calls int, do func()) []time.Duration {
	out := make([]time.Duration, rounds)
	for i := range out {
		began := time.Now()
		for range calls {
			do()
		}
		out[i] = time.Since(began) / time.Duration(calls)
	}
	return out
}

// agentIn returns an agent's request in a dialect.
func agentIn(d dialect.Dialect) (*dialect.Request, error) {
	chat := translate.Dialect("openai")
	asked, err := chat.ReadRequest("/v1/chat/completions", sample.Agent(100))
	if err != nil || d.Name() == chat.Name() {
		return asked, err
	}
	t, err := translate.New(chat, d, asked, translate.Options{Model: "m"})
	if err != nil {
		return nil, err
	}
	path, _, _ := strings.Cut(t.Path(), "?")
	return d.ReadRequest("/v1"+path, t.Body())
}
