package openai

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
)

// scanUsage reads a usage object. Anything else, null above all, gives an unknown usage.
func scanUsage(s *jsonscan.Scanner) dialect.Usage {
	var u dialect.Usage
	var total int64
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "prompt_tokens", "input_tokens":
			count(s, &u, &u.Input)
		case "completion_tokens", "output_tokens":
			count(s, &u, &u.Output)
		case "total_tokens":
			count(s, &u, &total)
		case "cached_tokens", "prompt_cache_hit_tokens": // Moonshot, DeepSeek
			count(s, &u, &u.CacheRead)
		case "prompt_tokens_details", "input_tokens_details":
			for ok := s.Object(); ok; ok = s.More('}') {
				switch key := s.Key(); string(key) {
				case "cached_tokens":
					count(s, &u, &u.CacheRead)
				case "cache_write_tokens":
					count(s, &u, &u.CacheWrite)
				default:
					s.Skip()
				}
			}
		case "completion_tokens_details", "output_tokens_details":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) == "reasoning_tokens" {
					count(s, &u, &u.Reasoning)
				} else {
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
	// xAI counts reasoning beside the completion; its total gives that away.
	if u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	return u
}

// count reads a number of tokens that is not negative into to.
func count(s *jsonscan.Scanner, u *dialect.Usage, to *int64) {
	if n, ok := s.Int(); ok && n >= 0 {
		*to = n
		u.Known = true
	}
}
