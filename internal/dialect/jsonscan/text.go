package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks the bytes of a word that are a quote, a backslash or a control character.
// The lowest mark is right; marks above it may be false.
//
// Quotes and control characters share a test: with its second bit turned, a quote is the next
// after the control characters, and none of those leaves their range.
func special(w uint64) uint64 {
	low := (w ^ ones*('"'^' ')) - ones*(' '+1)
	slash := (w ^ ones*'\\') - ones
	return (low | slash) &^ w & highs
}

// simple has the letters of escapes of two bytes.
var simple = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// stringEnd finds the closing quote from the byte after the opening one. It looks through
// eight bytes at a time while there is nothing special in them but escapes of two bytes.
func stringEnd(data []byte, i int) (end int, escaped bool, what string) {
	for {
		for len(data)-i > 16 {
			b := data[i : i+17 : i+17]
			var at int
			if low := special(binary.LittleEndian.Uint64(b)); low != 0 {
				at = bits.TrailingZeros64(low) >> 3
			} else if high := special(binary.LittleEndian.Uint64(b[8:])); high != 0 {
				at = 8 + bits.TrailingZeros64(high)>>3
			} else {
				i += 16
				continue
			}
			i += at
			if b[at&15] != '\\' || !simple[b[at&15+1]] {
				break
			}
			escaped = true
			i += 2
		}
		for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= 0x20 {
			i++
		}
		if i >= len(data) {
			return len(data), escaped, "unexpected end of JSON"
		}
		switch data[i] {
		case '"':
			return i, escaped, ""
		case '\\':
			escaped = true
			n, what := escape(data[i:])
			if what != "" {
				return i + n, escaped, what
			}
			i += n
		default:
			return i, escaped, "control character in a string"
		}
	}
}
