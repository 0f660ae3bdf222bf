package openai

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

// TestRepeatsMeanTheSame has streams of events that differ a little from each other, some of them
// broken. With and without the memory of the last event each of them means the same.
func TestRepeatsMeanTheSame(t *testing.T) {
	t.Parallel()
	texts := []string{"", " a", "word", `\n`, `\u00e9`, `x\"content\":\"y`, "é", "\x01", `"`, `","role":"x`, `"},"finish_reason":"stop","x":{"y":"`, "a longer text, with a comma"}
	shapes := []string{
		`{"id":"c","choices":[{"index":%[2]d,"delta":{"content":"%[1]s"},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":%[2]d,"delta":{"content":"%[1]s"},"finish_reason":"stop"}]}`,
		`{"id":"c","choices":[{"index":%[2]d,"delta":{"reasoning":"r","content":"%[1]s"}}]}`,
		`{"id":"c","choices":[{"index":%[2]d,"delta":{"role":"assistant","content":"%[1]s"}}],"error":{"message":"x"}}`,
		`{"id":"c","choices":[{"index":%[2]d,"delta":{"content":"%[1]s"}}],"usage":{"prompt_tokens":1}}`,
		`{"id":"c","choices":[{"index":%[2]d,"message":{"content":"%[1]s"},"delta":{}}]}`,
		`{"id":"c","choices":[{"index":%[2]d,"delta":{"content":"x"}}],"more":{"content":"%[1]s"}}`,
		`{"id":"c","choices":[{"index":%[2]d,"delta":{"tool_calls":[{"function":{"name":"f"}}],"content":"%[1]s"}}]}`,
		`{"id":"c","choices":[{"index":%[2]d,"delta":{"content":"%[1]s"},`,
	}
	repeated := 0
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		fast := Dialect{}.NewStream(&dialect.Request{}).(*stream)
		slow := Dialect{}.NewStream(&dialect.Request{}).(*stream)
		slow.repeat.misses = maxMisses // learns nothing
		shape := shapes[rnd.IntN(len(shapes))]
		for range 12 {
			if rnd.IntN(4) == 0 {
				shape = shapes[rnd.IntN(len(shapes))]
			}
			data := fmt.Appendf(nil, shape, texts[rnd.IntN(len(texts))], rnd.IntN(2))
			if rnd.IntN(10) == 0 {
				data[rnd.IntN(len(data))] = byte(rnd.IntN(256))
			}
			ev := &sse.Event{Data: data, HasData: true}
			if fast.repeat.matches(data) {
				repeated++
			}
			if f, s := fast.Observe(ev), slow.Observe(ev); !reflect.DeepEqual(f, s) || !reflect.DeepEqual(fast.Answer(), slow.Answer()) {
				t.Fatalf("seed %d, %q:\nwith memory    %+v %+v\nwithout memory %+v %+v", seed, data, f, fast.Answer(), s, slow.Answer())
			}
		}
	}
	if repeated < 200 {
		t.Errorf("only %d events were repetitions", repeated)
	}
}
