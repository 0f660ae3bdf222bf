// Package screen writes what the admin API tells as text for people, as wide as their terminal is
// unless the whole text is asked for.
//
// It computes nothing: every word comes from the API. Colours are the caller's choice.
package screen

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Width is how wide a line is at most, in characters, unless Style says otherwise.
const Width = 80

const (
	// Below narrow columns what would be columns stands below each other.
	narrow = 64
	// minWidth is the narrowest page: what is narrower still wraps.
	minWidth = 24
)

// Style says how to write.
type Style struct {
	// Colour switches ANSI colours on.
	Colour bool
	// Width is that of the terminal. Defaults to 80.
	Width int
	// Whole cuts no text, for an output that is no terminal: lines are then as long as names and
	// reasons are.
	Whole bool
}

// colour is an ANSI colour; the zero value is none.
type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
	dim    colour = "2"
	bold   colour = "1"
)

func (s Style) paint(c colour, text string) string {
	if !s.Colour || c == "" || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

func (s Style) width() int {
	if s.Width == 0 {
		return Width
	}
	return max(s.Width, minWidth)
}

// columns fits widths that are meant for 80 columns to the terminal's.
func (s Style) columns(widths []int) []int {
	out := make([]int, len(widths))
	for i, w := range widths {
		out[i] = max(w*s.width()/Width, 4)
	}
	return out
}

// stacked says that there is no room for columns.
func (s Style) stacked() bool { return !s.Whole && s.width() < narrow }

// cell is a text in a column.
type cell struct {
	text string
	col  colour
}

// row writes cells in columns of the given widths; the last column takes the rest of the line.
func (s Style) row(w io.Writer, widths []int, cells ...cell) {
	var b strings.Builder
	used := 0
	for i, c := range cells {
		last := i == len(cells)-1
		width := s.width() - used
		if !last {
			width = widths[i] - 1 // a space stands between columns
		}
		text := s.fit(c.text, width)
		b.WriteString(s.paint(c.col, text))
		if !last {
			b.WriteString(strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(text), 1)))
			used += widths[i]
		}
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// flow writes cells one after the other, on as many lines as they need.
func (s Style) flow(w io.Writer, cells []cell) {
	used := 0
	for i, c := range cells {
		text := s.fit(c.text, s.width())
		n := utf8.RuneCountInString(text)
		switch {
		case i == 0:
		case !s.Whole && used+2+n > s.width():
			fmt.Fprintln(w)
			used = 0
		default:
			fmt.Fprint(w, "  ")
			used += 2
		}
		fmt.Fprint(w, s.paint(c.col, text))
		used += n
	}
	fmt.Fprintln(w)
}

// fit makes a text one line of printable characters, since names come from configurations and
// upstreams, and cuts it to a width.
func (s Style) fit(text string, width int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if s.Whole || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}

// duration writes milliseconds as people say them: 1.8s, 42s, 3m10s, 2h05m, 3d4h.
func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
