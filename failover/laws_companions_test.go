package failover

import (
	"testing"
)

// TestCompanionLaws: what goes out beside an attempt of a provider that hangs (law R9).
func TestCompanionLaws(t *testing.T) {
	t.Parallel()
	playLaws(t, []lawCase{
		{name: "R9: a slow attempt of a provider that hangs gets a companion, and the first content wins",
			targets: []string{"a/1/m", "a/2/m", "b/1/m"},
			play: `
				begin   -> dispatch a/1/m
				suspect -> continue
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect#1 -> dispatch b/1/m
				content   -> commit b/1/m, cancel a/1/m
				end       -> finish`},
		{name: "R9: the slow one may win",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin -> dispatch a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect   -> dispatch b/1/m
				content#1 -> commit a/1/m, cancel b/1/m
				end#1     -> finish`},
		{name: "R9: no companion on the hanging provider, even as its probe",
			targets: []string{"a/1/m", "a/2/m"},
			play: `
				begin -> dispatch a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect -> continue
				+2s
				suspect      -> continue
				fail timeout -> dispatch a/2/m as a probe
				content      -> commit a/2/m
				end          -> finish`},
		{name: "R9: a companion's failure brings the next one",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin -> dispatch a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect  -> dispatch b/1/m
				fail 500 -> dispatch c/1/m
				fail#1 timeout -> continue
				content  -> commit c/1/m
				end      -> finish`},
		{name: "R9: so does a companion that hangs too, but not one that is only slow",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin -> dispatch a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect   -> dispatch b/1/m
				suspect#2 -> continue
				slow b/1/m
				slow b/1/m
				slow b/1/m
				slow b/1/m
				suspect#2 -> dispatch c/1/m
				content   -> commit c/1/m, cancel a/1/m, cancel b/1/m
				end       -> finish`},
		{name: "R9: a slow probe gets a companion whoever opened the breaker, and frees its slot",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				other a/1/m 429/1s
				+1s
				begin   -> dispatch a/1/m as a probe
				suspect -> dispatch b/1/m
				content -> commit b/1/m, cancel a/1/m
				hold a/1/m
				free a/1/m
				end     -> finish`},
	})
}
