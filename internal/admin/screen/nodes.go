package screen

import (
	"fmt"
	"io"
	"strings"

	"omniroute/internal/admin"
)

// nodes lists the nodes of a cluster.
func (s Style) nodes(w io.Writer, st admin.Status) {
	if len(st.Nodes) == 0 {
		return
	}
	columns := s.columns([]int{40, 18})
	fmt.Fprintln(w)
	s.row(w, columns, cell{"NODE", dim}, cell{"LAST CONTACT", dim}, cell{"", ""})
	for _, n := range st.Nodes {
		note, contact := cell{}, cell{duration(n.AgeMs) + " ago", green}
		if n.Self {
			note.text = "this one"
		}
		if n.Stale {
			contact.col, note = red, cell{strings.TrimSpace(note.text + " stale"), red}
		}
		s.row(w, columns, cell{n.ID, ""}, contact, note)
	}
	if more := st.NodeCount - len(st.Nodes); more > 0 {
		fmt.Fprintf(w, "and %s more\n", plural(more, "node"))
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
