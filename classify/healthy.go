package classify

// quickHealthy is the cheap way past a good answer: it looks at nothing but what must be there.
// Anything out of the ordinary is left to the full reading.
func quickHealthy(in Input) bool { return false }
