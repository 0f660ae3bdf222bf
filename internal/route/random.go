package route

import "math/bits"

// random is a small generator of numbers (splitmix64). A request's numbers follow from the router's
// seed and the request's turn, so that an explanation draws the same ones and takes none away.
type random struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func newRandom(seed, salt, turn uint64) random { return random{mix(seed^salt) + turn*golden} }

func (r *random) next() uint64 {
	r.state += golden
	return mix(r.state)
}

// below returns a number from 0 to n-1.
func (r *random) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// mix makes every bit of its argument matter for every bit of its result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hash turns names into a number that is the same everywhere and always (FNV-1a, mixed).
func hash(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return mix(h)
}
