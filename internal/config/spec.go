package config

import "time"

// kind is the type of a value in the file.
type kind uint8

const (
	kindString   kind = iota
	kindURL           // a string that is shown unless it holds a password
	kindSecret        // a string that is never shown
	kindFile          // a path, which is shown unless it looks like what should be in the file
	kindEnum          // one of the spec's words
	kindInt           // a whole number
	kindNumber        // a number
	kindBool          // true or false
	kindDuration      // 90s, 1h30m
	kindSize          // 64MiB, or bytes
	kindShare         // 0 to 1, or 5%
	kindStatus        // an HTTP status: 429, 5xx, 500-504
	kindList          // of elem
	kindMap           // free names to elem
	kindObject        // the spec's fields
)

// spec is what may stand in one place of the file.
type spec struct {
	kind   kind
	fields []field  // of an object
	elem   *spec    // of a list or map
	enum   []string // the words of an enum, or further words beside a duration or number ("auto")
	// alternative is a second form, for places that take a short and a long one.
	alternative *spec
	// min and max bound a number; max 0 means none. For a duration min is nanoseconds.
	min, max float64
	// nonEmpty refuses empty lists and mappings.
	nonEmpty bool
}

// field is one key of an object.
type field struct {
	key string
	spec
	required bool
	// def is the default as the file would have it, empty when there is none.
	def string
	// doc is for people: a sentence or two, in the schema and in the reference.
	doc string
	// example is shown in the reference where the default says too little.
	example string
}

// maxDuration bounds every time in a file: a year is a typing error.
const maxDuration = 366 * 24 * time.Hour

// A positive duration has no meaning as zero.
const positive = 1

func (s *spec) field(key string) *field {
	for i := range s.fields {
		if s.fields[i].key == key {
			return &s.fields[i]
		}
	}
	return nil
}

// hasFields reports whether the spec is that object which has the fields.
func (s *spec) hasFields(fields []field) bool { return len(s.fields) > 0 && &s.fields[0] == &fields[0] }

// private reports whether a secret may stand anywhere below, so that a value in the wrong form there is not shown.
func (s *spec) private() bool {
	if s.kind == kindSecret || s.kind == kindURL || s.kind == kindFile {
		return true
	}
	if s.elem != nil && s.elem.private() || s.alternative != nil && s.alternative.private() {
		return true
	}
	for i := range s.fields {
		if s.fields[i].private() {
			return true
		}
	}
	return false
}

// takes returns the form of the spec that a value of that shape is meant for, and whether it fits.
func (s *spec) takes(n *node) (*spec, bool) {
	for form := s; form != nil; form = form.alternative {
		if form.fits(n) {
			return form, true
		}
	}
	return s, false
}

// fits reports whether a value has the shape of the spec, whatever its content.
func (s *spec) fits(n *node) bool {
	switch s.kind {
	case kindObject, kindMap:
		return n.shape == shapeMap || n.shape == shapeNull
	case kindList:
		return n.shape == shapeList
	case kindStatus:
		return n.shape == shapeInt || n.shape == shapeString
	case kindInt:
		return n.shape == shapeInt || n.expanded || n.shape == shapeString && len(s.enum) > 0
	case kindNumber:
		return n.shape == shapeInt || n.shape == shapeFloat || n.expanded
	case kindBool:
		return n.shape == shapeBool || n.expanded
	case kindSize, kindShare, kindDuration:
		return n.shape == shapeString || n.shape == shapeInt || n.shape == shapeFloat
	}
	return n.shape == shapeString
}

// words says what a place takes, for messages.
func (s *spec) words() string {
	text := [...]string{
		"a string", "a string", "a string", "a string", "a word", "a whole number", "a number", "true or false", "a duration such as 30s",
		"a size such as 64MiB", "a share such as 0.1 or 10%", "an HTTP status", "a list", "a mapping", "a mapping",
	}[s.kind]
	if s.alternative != nil {
		text += " or " + s.alternative.words()
	}
	return text
}
