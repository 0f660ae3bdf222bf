package neutral

import "slices"

// Merged returns the turns with neighbours of the same role made one, for dialects in which
// roles take turns.
func Merged(turns []Turn) []Turn {
	out := make([]Turn, 0, len(turns))
	for _, t := range turns {
		if n := len(out); n > 0 && out[n-1].Role == t.Role {
			out[n-1].Parts = append(out[n-1].Parts[:len(out[n-1].Parts):len(out[n-1].Parts)], t.Parts...)
			continue
		}
		out = append(out, t)
	}
	return out
}

// Hoisted returns all system texts of the request, those inside the conversation after the
// ones above it, and the turns without them.
func (r *Request) Hoisted() (system []Part, turns []Turn) {
	system = r.System[:len(r.System):len(r.System)]
	if !slices.ContainsFunc(r.Turns, func(t Turn) bool { return t.Role == RoleSystem }) {
		return system, r.Turns
	}
	for _, t := range r.Turns {
		if t.Role == RoleSystem {
			system = append(system, t.Parts...)
		} else {
			turns = append(turns, t)
		}
	}
	return system, turns
}

// Paired returns the turns with the results of tools where every API takes them: directly after
// the turn with their calls, in the order of the calls, and before what else the user says. Turns that are in
// that order already are returned as they are.
func Paired(turns []Turn) []Turn {
	for i := range turns {
		if turns[i].Role == RoleAssistant && HasCall(turns[i].Parts) && !paired(turns, i) {
			return pair(turns)
		}
	}
	return turns
}

// paired reports whether the results of the calls in a turn follow it in order.
func paired(turns []Turn, at int) bool {
	turn, part := at+1, 0
	for i := range turns[at].Parts {
		p := &turns[at].Parts[i]
		if p.Kind != PartCall {
			continue
		}
		for turn < len(turns) && part == len(turns[turn].Parts) { // chat has a turn for each result
			if shows(turns[turn].Parts) {
				return false
			}
			turn, part = turn+1, 0
		}
		if turn < len(turns) && turns[turn].Role == RoleUser {
			if r := &turns[turn].Parts[part]; r.Kind == PartResult && r.Result.ID == p.Call.ID {
				part++
				continue
			}
		}
		if answered(turns[at+1:], p.Call.ID) {
			return false
		}
	}
	return true
}

// shows reports whether results have more than texts, which some dialects put behind all results of a turn.
func shows(parts []Part) bool {
	for i := range parts {
		if slices.ContainsFunc(parts[i].Result.Parts, func(p Part) bool { return p.Kind != PartText }) {
			return true
		}
	}
	return false
}

// answered reports whether the result of a call comes before the assistant speaks again.
func answered(turns []Turn, id string) bool {
	for i := range turns {
		if turns[i].Role == RoleAssistant {
			break
		}
		if slices.ContainsFunc(turns[i].Parts, func(p Part) bool { return p.Kind == PartResult && p.Result.ID == id }) {
			return true
		}
	}
	return false
}

func pair(turns []Turn) []Turn {
	out := make([]Turn, 0, len(turns)+1)
	for i := 0; i < len(turns); {
		t := turns[i]
		out = append(out, t)
		if i++; t.Role != RoleAssistant || !HasCall(t.Parts) {
			continue
		}
		end := i
		for end < len(turns) && turns[end].Role != RoleAssistant {
			end++
		}
		rest := make([]Turn, 0, end-i)
		for _, u := range turns[i:end] {
			rest = append(rest, Turn{Role: u.Role, Parts: slices.Clone(u.Parts)})
		}
		i = end
		results := Turn{Role: RoleUser}
		for k := range t.Parts {
			if t.Parts[k].Kind == PartCall {
				results.Parts = takeResult(results.Parts, rest, t.Parts[k].Call.ID)
			}
		}
		if len(results.Parts) > 0 {
			out = append(out, results)
		}
		for _, u := range rest {
			if len(u.Parts) > 0 {
				out = append(out, u)
			}
		}
	}
	return out
}

// takeResult moves the result of a call from the turns to the list.
func takeResult(list []Part, turns []Turn, id string) []Part {
	for i := range turns {
		parts := turns[i].Parts
		for k := range parts {
			if parts[k].Kind == PartResult && parts[k].Result.ID == id {
				list = append(list, parts[k])
				turns[i].Parts = slices.Delete(parts, k, k+1)
				return list
			}
		}
	}
	return list
}
