package route

// recent is a map that forgets what was not asked for lately. It holds between limit and twice as
// many entries once it is full. It has no lock of its own.
type recent[K comparable, V any] struct {
	limit    int
	new, old map[K]V
}

func (r *recent[K, V]) get(key K) (V, bool) {
	if v, ok := r.new[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	if ok {
		r.put(key, v)
	}
	return v, ok
}

func (r *recent[K, V]) put(key K, v V) {
	if len(r.new) >= r.limit {
		r.old, r.new = r.new, nil
	}
	if r.new == nil {
		r.new = make(map[K]V)
	}
	r.new[key] = v
}
