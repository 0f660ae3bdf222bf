package resilience

import "slices"

// A call for a lease that is not answered may have been done all the same: then this node has a lease
// that it does not know of, which keeps every other node from probing until it ends. Such gates are
// remembered, and whatever lease this node may have on them is given back as soon as the store answers,
// and again when another node says that it wants it.

// doubt remembers that this node may have been given leases without being told.
func (s *sharing) doubt(ids []RecordID, until instant) {
	for _, id := range ids {
		s.unsure[id] = until
	}
}

// disown gives back whatever lease this node may have on a gate, unless it has asked for it again.
func (s *sharing) disown(id RecordID, now instant) {
	until, doubtful := s.unsure[id]
	if r := s.rights[id]; !doubtful || now >= until || s.freeing[id] || r != nil && (r.mine || r.asked) {
		return
	}
	s.free = append(s.free, Held{Gate: id})
	s.freeing[id] = true
	kick(s.sendNow)
}

func (s *sharing) disownAll(now instant) {
	for id, until := range s.unsure {
		if now >= until {
			delete(s.unsure, id)
			continue
		}
		s.disown(id, now)
	}
}

// dropDisowned takes back what disown has said but nobody has heard: by the time that it could be sent
// this node may have a lease that it knows of.
func (s *sharing) dropDisowned() {
	s.free = slices.DeleteFunc(s.free, func(h Held) bool { return h.Token == 0 })
}
