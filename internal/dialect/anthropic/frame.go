package anthropic

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

var _ dialect.Framer = Dialect{}

// KeepAlive is the API's own ping, which its clients pass over wherever it comes.
func (Dialect) KeepAlive() []byte { return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n") }

// Frame gives an event the name that its data tells as its type: official clients pass over events
// without one.
func (Dialect) Frame(ev *sse.Event) {
	if len(ev.Name) > 0 || !ev.HasData || len(ev.Raw) == 0 {
		return
	}
	s := jsonscan.New(ev.Data)
	for ok := s.Object(); ok; ok = s.More('}') {
		if key := s.Key(); string(key) == "type" {
			if kind := s.Text(); len(kind) > 0 {
				raw := append(make([]byte, 0, len(ev.Raw)+len(kind)+8), "event: "...)
				for _, c := range kind {
					if c > ' ' {
						raw = append(raw, c)
					}
				}
				ev.Raw = append(append(raw, '\n'), ev.Raw...)
			}
			return
		}
		s.Skip()
	}
}
