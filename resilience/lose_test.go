package resilience

import (
	"testing"
	"time"
)

// A beat that was overtaken says of an old token that it is lost: the newer right stays.
func TestK2AnOldBeatTakesNoNewRight(t *testing.T) {
	t.Parallel()
	id := RecordID{LayerConnection, Key{Provider: "p", Connection: "a"}}
	s := newSharing(nil, time.Now())
	s.rights[id] = &right{mine: true, token: 9}
	if s.lose(Held{Gate: id, Token: 7}); s.rights[id] == nil {
		t.Error("the newer right is gone")
	}
	if s.lose(Held{Gate: id, Token: 9}); s.rights[id] != nil {
		t.Error("a right that is another node's is kept")
	}
}
