package failover

import (
	"sync"

	"omniroute/classify"
)

// transportErrors returns the classifier for errors of plain Go calls.
var transportErrors = sync.OnceValue(func() *classify.Classifier {
	c, err := classify.New()
	if err != nil {
		panic(err) // the built-in rules are checked by their own tests
	}
	return c
})
