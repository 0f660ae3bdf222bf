package admin

import (
	"net/http"

	"omniroute/classify"
	"omniroute/resilience"
)

// UnknownErrors is the answer to GET /admin/v1/unknown-errors: failures that no rule knew, so that
// the status alone decided. A rule under error_rules would say what they mean.
type UnknownErrors struct {
	// Counts are how often each default rule decided since the start.
	Counts map[string]uint64 `json:"counts"`
	// Samples are the latest of each shape, newest first, without secrets.
	Samples []UnknownError `json:"samples"`
}

// UnknownError is one shape of such a failure.
type UnknownError struct {
	At resilience.Timestamp `json:"at"` // when it was last seen
	classify.Sample
}

func (a *Admin) unknownErrors(w http.ResponseWriter, _ *http.Request) error {
	out := UnknownErrors{Counts: map[string]uint64{}, Samples: []UnknownError{}}
	if a.o.Unknown != nil {
		out.Counts = a.o.Unknown.Counts()
		for _, s := range a.o.Unknown.List() {
			out.Samples = append(out.Samples, UnknownError{At: resilience.Timestamp{Time: s.At}, Sample: s})
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}
