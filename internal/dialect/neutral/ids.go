package neutral

import (
	"slices"
	"strconv"
)

// Identified returns the turns with an id of its own for each call of a turn, and its result with the same. Some
// clients give calls no ids, or one turn's calls the same; their results then come in the order of the calls. Turns
// whose ids can be told apart are returned as they are.
func Identified(turns []Turn) []Turn {
	for i := range turns {
		if turns[i].Role == RoleAssistant && !distinct(turns[i].Parts) {
			return identify(turns)
		}
	}
	return turns
}

// distinct reports whether the calls among parts have ids that differ.
func distinct(parts []Part) bool {
	for i := range parts {
		if parts[i].Kind != PartCall {
			continue
		}
		if parts[i].Call.ID == "" {
			return false
		}
		for k := range parts[:i] {
			if parts[k].Kind == PartCall && parts[k].Call.ID == parts[i].Call.ID {
				return false
			}
		}
	}
	return true
}

func identify(turns []Turn) []Turn {
	used := map[string]bool{}
	for i := range turns {
		for k := range turns[i].Parts {
			used[turns[i].Parts[k].Call.ID] = true
		}
	}
	out := slices.Clone(turns)
	var open map[string][]*Call // calls of the last turn without a result, by their old ids
	for i := range out {
		t := &out[i]
		t.Parts = slices.Clone(t.Parts)
		if t.Role == RoleAssistant && HasCall(t.Parts) {
			open = map[string][]*Call{}
		}
		for k := range t.Parts {
			switch p := &t.Parts[k]; p.Kind {
			case PartCall:
				old := p.Call.ID
				if old == "" || len(open[old]) > 0 {
					p.Call.ID = freshID(old, used)
				}
				open[old] = append(open[old], &p.Call)
			case PartResult:
				if list := open[p.Result.ID]; len(list) > 0 {
					open[p.Result.ID] = list[1:]
					p.Result.ID, p.Result.Name = list[0].ID, list[0].Name
				}
			}
		}
	}
	return out
}

func freshID(old string, used map[string]bool) string {
	if old == "" {
		old = "call"
	}
	for k := 2; ; k++ {
		if id := old + "_" + strconv.Itoa(k); !used[id] {
			used[id] = true
			return id
		}
	}
}
