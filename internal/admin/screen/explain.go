package screen

import (
	"fmt"
	"io"

	"omniroute/internal/admin"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// Explain writes the candidates of a request in their order.
func (s Style) Explain(w io.Writer, model string, x admin.Explanation) {
	fmt.Fprintln(w, s.paint(bold, s.fit(model, s.width())))
	if x.Route != model {
		fmt.Fprintln(w, s.fit("stands for "+x.Route, s.width()))
	}
	if word := map[route.Affinity]string{
		route.AtHome: "the session is at home at the first", route.Settled: "the session has no home yet, or leaves it", route.Detour: "the session's home is out, so that this is a detour",
	}[x.Session]; word != "" {
		fmt.Fprintln(w, s.fit(word, Width))
	}
	if len(x.Candidates) == 0 {
		fmt.Fprintln(w, "no connection of it has a key, so a request is answered 503 no_connection")
		return
	}
	columns := s.columns([]int{4, 50})
	columns[0] = 4
	s.row(w, columns, cell{"#", dim}, cell{"TARGET", dim}, cell{"TRIED", dim})
	for i, c := range x.Candidates {
		target := resilience.Key{Provider: c.Provider, Connection: c.Connection, Model: c.Model}
		verdict := cell{"yes", green}
		if !c.Eligible {
			verdict = cell{"no", yellow}
			if c.RetryAfterMs > 0 {
				verdict.text += ", in " + duration(c.RetryAfterMs)
			}
			if c.Kind != nil {
				verdict.text += " " + c.Kind.String()
			}
		}
		s.row(w, columns, cell{fmt.Sprint(i + 1), ""}, cell{target.String(), ""}, verdict)
		s.row(w, columns[:1], cell{}, cell{c.Reason, dim})
	}
}
