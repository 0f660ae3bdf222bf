package sqlite

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"

	"omniroute/resilience"
)

// The columns of a scan: numbers first, then names, the detail last.
const (
	rowNumbers = 6
	rowTexts   = 6
)

var numberColumns = [rowNumbers]string{"level", "failures", "since_ms", "until_ms", "updated_ms", "lockout_duration_ms"}

// separator joins the columns of a joined scan: a character that neither names nor JSON have.
const separator = "\x1f"

// errAmbiguous says that a row has the separator in a name after all.
var errAmbiguous = errors.New("a name contains the separator")

// errUnreadable says that a row is not made of numbers and texts.
var errUnreadable = errors.New("its columns cannot be read")

func (t table) scanColumns() string {
	lockout := "0"
	if t.lockoutMs != "" {
		lockout = t.lockoutMs
	}
	return "level, failures, since_ms, until_ms, updated_ms, " + lockout + ", provider, connection, model, state, kind, detail"
}

// joinedScan selects each row as one text, because most of the cost of a scan is per column:
// it takes half the time of plainScan.
func (t table) joinedScan() string {
	return "SELECT concat_ws(char(31), " + t.scanColumns() + ") FROM " + t.name
}

// plainScan selects the columns one by one, for tables with a row that joinedScan cannot tell.
func (t table) plainScan() string { return "SELECT " + t.scanColumns() + " FROM " + t.name }

// row is what a scan selected of one row. The texts may share memory.
type row struct {
	numbers [rowNumbers]int64
	texts   [rowTexts]string // provider, connection, model, state, kind, detail
}

// splitRow reads a row of joinedScan: errAmbiguous when there are more columns than there can
// be, errUnreadable when there are fewer or when a number is none.
func splitRow(text string) (r row, err error) {
	switch n := strings.Count(text, separator); {
	case n > rowNumbers+rowTexts-1:
		return r, errAmbiguous
	case n < rowNumbers+rowTexts-1:
		return r, errUnreadable
	}
	for i := range r.numbers {
		end := strings.IndexByte(text, separator[0])
		var ok bool
		if r.numbers[i], ok = parseInt(text[:end]); !ok {
			return r, errUnreadable
		}
		text = text[end+1:]
	}
	last := len(r.texts) - 1
	for i := range last {
		end := strings.IndexByte(text, separator[0])
		r.texts[i], text = text[:end], text[end+1:]
	}
	r.texts[last] = text
	return r, nil
}

// plainRow reads a row of plainScan.
func plainRow(values []sqldriver.Value) (r row, err error) {
	for i := range r.numbers {
		var ok bool
		if r.numbers[i], ok = values[i].(int64); !ok {
			return r, errUnreadable
		}
	}
	for i := range r.texts {
		var ok bool
		if r.texts[i], ok = values[rowNumbers+i].(string); !ok {
			return r, errUnreadable
		}
	}
	return r, nil
}

// record makes a record of the row, without its layer. The reason is empty when the row makes
// sense; the key is set in any case. Of the record only the detail keeps a reference to the
// row's memory: names are kept for long, the detail is read once and dropped.
func (r *row) record(in *interner) (rec resilience.Record, reason string) {
	rec.Key = resilience.Key{Provider: in.name(0, r.texts[0]), Connection: in.name(1, r.texts[1]), Model: strings.Clone(r.texts[2])}
	kind, err := in.kind(r.texts[4])
	if err != nil {
		return rec, err.Error()
	}
	for i, n := range r.numbers {
		if n < 0 {
			return rec, fmt.Sprintf("%s is %d, which is negative", numberColumns[i], n)
		}
	}
	if r.numbers[0] > math.MaxInt || r.numbers[1] > math.MaxInt {
		return rec, "its level or failures is too large"
	}
	rec.State, rec.Kind = in.name(2, r.texts[3]), kind
	rec.Level, rec.Failures = int(r.numbers[0]), int(r.numbers[1])
	rec.SinceMs, rec.UntilMs, rec.UpdatedMs, rec.LockoutMs = r.numbers[2], r.numbers[3], r.numbers[4], r.numbers[5]
	rec.Detail = r.texts[5]
	return rec, ""
}

// parseInt reads a decimal integer that fits.
func parseInt(s string) (n int64, ok bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 19 {
		return 0, false
	}
	var u uint64 // 19 digits cannot overflow it
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if len(digits) < len(s) {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

// interner shares the strings that repeat from row to row. Rows come in the order of their
// keys, so that most names equal those of the row before.
type interner struct {
	last  [3]string // provider, connection, state
	kinds map[string]resilience.Kind
}

func (in *interner) name(column int, s string) string {
	if in.last[column] != s {
		in.last[column] = strings.Clone(s)
	}
	return in.last[column]
}

func (in *interner) kind(name string) (resilience.Kind, error) {
	if in.kinds == nil {
		in.kinds = map[string]resilience.Kind{}
		for _, k := range resilience.Kinds() {
			in.kinds[k.String()] = k
		}
	}
	if k, ok := in.kinds[name]; ok {
		return k, nil
	}
	return resilience.ParseKind(name)
}
