package sse

import "bytes"

// parse fills r.event from a block of LF-ended lines that ends with a blank one.
func (r *Reader) parse(raw []byte) {
	ev := &r.event
	*ev = Event{Raw: raw, Comment: true}
	joined := false
	for rest := raw[:len(raw)-1]; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		line := rest[:i]
		rest = rest[i+1:]
		if line[0] == ':' {
			continue
		}
		ev.Comment = false
		switch {
		case isField(line, "data"):
			value := fieldValue(line, len("data"))
			switch {
			case !ev.HasData:
				ev.Data, ev.HasData = value, true
			case !joined:
				r.data = append(append(append(r.data[:0], ev.Data...), '\n'), value...)
				joined = true
			default:
				r.data = append(append(r.data, '\n'), value...)
			}
		case isField(line, "event"):
			ev.Name = fieldValue(line, len("event"))
		case isField(line, "id"):
			if id := fieldValue(line, len("id")); bytes.IndexByte(id, 0) < 0 {
				ev.ID = id
			}
		}
	}
	if joined {
		ev.Data = r.data
	}
}

// isField reports whether the line is that field: its name, then a colon or nothing.
func isField(line []byte, name string) bool {
	return len(line) >= len(name) && string(line[:len(name)]) == name &&
		(len(line) == len(name) || line[len(name)] == ':')
}

// fieldValue returns what follows the colon and at most one space.
func fieldValue(line []byte, nameLen int) []byte {
	if len(line) <= nameLen {
		return nil
	}
	value := line[nameLen+1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return value
}
