package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"omniroute/internal/admin"
	"omniroute/internal/admin/screen"
)

const (
	// redrawn is how often --watch asks when nothing happens, for what runs down by itself.
	redrawn = time.Second
	// settled is how long after an event it asks at the soonest: events come in crowds.
	settled = 100 * time.Millisecond
)

// styleFor cuts lines on terminals only: what is piped is searched and kept.
func styleFor(out io.Writer) screen.Style {
	width, _ := sizeOf(out)
	return screen.Style{Colour: colours(out), Whole: !terminal(out), Width: width}
}

// sizeOf returns the terminal's columns and lines, 0 where nobody knows.
func sizeOf(out io.Writer) (columns, lines int) {
	if f, ok := out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil {
			return w, h
		}
	}
	return 0, 0
}

// watchStatus draws the status until ctx ends, every second and whenever something happens. A gateway
// that is gone is waited for, and what it last said is shown meanwhile; one that refuses is not.
func watchStatus(ctx context.Context, out io.Writer, client *admin.Client) error {
	w := watch{out: out, inPlace: terminal(out)}
	happened := make(chan struct{}, 1)
	following, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		follow(following, client, happened)
	}()
	defer func() {
		stop()
		<-done
		w.end()
	}()
	tick := time.NewTicker(redrawn)
	defer tick.Stop()
	for {
		st, _, err := client.Status(ctx)
		var gone *admin.UnreachableError
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			w.last = &st
		case !errors.As(err, &gone):
			return err
		}
		if err := w.draw(client.Address(), gone); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-happened:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(settled):
			}
		}
	}
}

// follow tells of the gateway's events, over its restarts.
func follow(ctx context.Context, client *admin.Client, happened chan<- struct{}) {
	for ctx.Err() == nil {
		_ = client.Follow(ctx, func() { // the status tells what is wrong
			select {
			case happened <- struct{}{}:
			default:
			}
		})
		select {
		case <-ctx.Done():
		case <-time.After(redrawn):
		}
	}
}

// watch draws one page after the other.
type watch struct {
	out     io.Writer
	inPlace bool
	begun   bool
	last    *admin.Status
}

// draw shows the last status. Where gone is set it is an old one, and is shown without colours, since
// its times may have run out.
func (w *watch) draw(address string, gone *admin.UnreachableError) error {
	style := styleFor(w.out)
	var page bytes.Buffer
	if gone != nil {
		fmt.Fprintln(&page, gone)
		if w.last != nil {
			fmt.Fprintf(&page, "trying again; this was so at %s:\n\n", w.last.Now.Local().Format("15:04:05"))
		}
		style.Colour = false
	}
	if w.last != nil {
		style.Status(&page, *w.last, address)
	}
	if !w.inPlace {
		_, err := w.out.Write(append(page.Bytes(), '\n'))
		return err
	}
	_, lines := sizeOf(w.out)
	over := overdraw(page.Bytes(), lines)
	if !w.begun {
		w.begun = true
		over = append([]byte("\x1b[?25l\x1b[2J"), over...) // no cursor on an empty screen
	}
	_, err := w.out.Write(over)
	return err
}

// end gives the cursor back.
func (w *watch) end() {
	if w.begun {
		fmt.Fprint(w.out, "\x1b[?25h")
	}
}

// overdraw puts a page over the one before: each line is overwritten and then cut, and so is what is
// left of the old page, so that nothing flickers. What does not fit on the screen is counted, since a
// screen that scrolls could not be drawn over.
func overdraw(page []byte, lines int) []byte {
	all := bytes.Split(bytes.TrimSuffix(page, []byte("\n")), []byte("\n"))
	if lines > 1 && len(all) > lines-1 {
		hidden := len(all) - (lines - 2)
		all = append(all[:max(lines-2, 0):max(lines-2, 0)], fmt.Appendf(nil, "… and %d more lines; a higher terminal shows them", hidden))
	}
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for _, line := range all {
		b.Write(line)
		b.WriteString("\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.Bytes()
}
