package resilience

import "encoding/json"

// recordText is a Record without its identity, as shared stores keep it.
type recordText struct {
	State     string `json:"state"`
	Kind      string `json:"kind"`
	Level     int    `json:"level,omitempty"`
	Failures  int    `json:"failures,omitempty"`
	SinceMs   int64  `json:"since_ms,omitempty"`
	UntilMs   int64  `json:"until_ms,omitempty"`
	UpdatedMs int64  `json:"updated_ms,omitempty"`
	LockoutMs int64  `json:"lockout_ms,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// EncodeRecord writes a record, without its identity, as one line of JSON.
func EncodeRecord(r Record) string {
	b, _ := json.Marshal(recordText{r.State, r.Kind.String(), r.Level, r.Failures, r.SinceMs, r.UntilMs, r.UpdatedMs, r.LockoutMs, r.Detail})
	return string(b)
}

// DecodeRecord reads what EncodeRecord writes. Fields that this version does not know are passed
// over, and a kind that it does not know is KindUnknown: another version may share the store.
func DecodeRecord(id RecordID, text string) (Record, error) {
	var t recordText
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return Record{}, err
	}
	kind, err := ParseKind(t.Kind)
	if err != nil {
		kind = KindUnknown
	}
	return Record{id.Layer, id.Key, t.State, kind, t.Level, t.Failures, t.SinceMs, t.UntilMs, t.UpdatedMs, t.LockoutMs, t.Detail}, nil
}

// withCause returns a detail with the cause that another one names.
func withCause(text, cause string) string {
	d, err := parseDetail(text)
	c, bad := parseDetail(cause)
	if err != nil || bad != nil {
		return text
	}
	d.Rule, d.Quarantined, d.BaseMs, d.Credential = c.Rule, c.Quarantined, c.BaseMs, c.Credential
	b, _ := json.Marshal(d)
	return string(b)
}
