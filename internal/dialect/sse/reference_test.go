package sse

import "strings"

// block is an event as the reference parser sees it.
type block struct {
	Raw, Name, Data, ID            string
	HasData, Comment, Unterminated bool
}

// reference reads a whole stream at once, slowly and plainly.
func reference(text string) []block {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	var blocks []block
	var lines []string
	flush := func(unterminated bool) {
		if len(lines) > 0 {
			b := parseBlock(lines)
			b.Unterminated = unterminated
			blocks = append(blocks, b)
		}
		lines = nil
	}
	for len(text) > 0 {
		line, rest, found := strings.Cut(text, "\n")
		text = rest
		switch {
		case line == "" && found:
			flush(false)
		default:
			lines = append(lines, line)
		}
	}
	flush(true)
	return blocks
}

func parseBlock(lines []string) block {
	b := block{Raw: strings.Join(lines, "\n") + "\n\n", Comment: true}
	var data []string
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		if name == "" {
			continue
		}
		b.Comment = false
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			data = append(data, value)
		case "event":
			b.Name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				b.ID = value
			}
		}
	}
	b.HasData = data != nil
	b.Data = strings.Join(data, "\n")
	return b
}
