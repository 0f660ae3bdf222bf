package alert

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"omniroute/resilience"
)

// Message is the body of one alert.
type Message struct {
	// ID is the same for every try to deliver it.
	ID string `json:"id"`
	// Type is what happened: breaker.opened, breaker.closed, quarantine.began, quarantine.ended, no_target.began,
	// no_target.ended, store.degraded, store.ok, cluster.isolated, cluster.joined.
	Type string               `json:"type"`
	At   resilience.Timestamp `json:"at"` // since when it is so
	// Text is the whole in a sentence, where receivers such as Slack look for it.
	Text    string  `json:"text"`
	Subject Subject `json:"subject"`
	Kind    string  `json:"kind,omitempty"`
	// Changes is how often it went to and fro since the last alert about it, this change included.
	Changes int    `json:"changes"`
	Gateway string `json:"gateway,omitempty"` // the host's name
}

// words are the ends of types, for bad and well, and what a person reads.
var words = map[string]struct{ began, ended, bad, well string }{
	"breaker":    {"opened", "closed", "The circuit breaker of %s is open%s: it gets nothing but probes.", "The circuit breaker of %s is closed again%s."},
	"quarantine": {"began", "ended", "The connection %s is in quarantine%s and needs a person: a key was revoked, an account closed, or credit is gone.", "The connection %s is out of quarantine%s."},
	"no_target":  {"began", "ended", "The combo %s has no target left%s: its clients get errors.", "The combo %s has a target again%s."},
	"store":      {"degraded", "ok", "The store fails%s%s. Routing goes on from memory; a restart would forget what is out.", "The store is well again%s%s."},
	"cluster":    {"isolated", "joined", "This gateway cannot reach the shared store%s%s and goes on by itself.", "This gateway shares with the others again%s%s."},
}

func messageOf(r report, gateway string) Message {
	w := words[r.Event]
	m := Message{ID: newID(), At: resilience.Timestamp{Time: r.since}, Subject: r.Subject, Kind: r.Kind, Changes: r.changes, Gateway: gateway}
	text := w.well
	m.Type = r.Event + "." + w.ended
	if r.Bad {
		m.Type, text = r.Event+"."+w.began, w.bad
	}
	name := r.Combo
	if r.Provider != "" {
		name = resilience.Key{Provider: r.Provider, Connection: r.Connection}.String()
	}
	why := ""
	if r.Kind != "" {
		why = " (" + r.Kind + ")"
	}
	m.Text = fmt.Sprintf(text, name, why)
	if r.changes > 1 {
		m.Text += fmt.Sprintf(" It has changed %d times since the last alert.", r.changes)
	}
	if gateway != "" {
		m.Text = "[" + gateway + "] " + m.Text
	}
	return m
}

func newID() string {
	var b [12]byte
	rand.Read(b[:])
	return "alert_" + hex.EncodeToString(b[:])
}

// SignatureHeader carries "t=UNIX,v1=HEX": the time of sending, and the HMAC-SHA256 of "UNIX.BODY" by the secret.
const SignatureHeader = "X-Omniroute-Signature"

func sign(secret string, body []byte, now time.Time) string {
	t := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

func (m Message) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil { // only a bug: it holds nothing but strings and a time
		panic(err)
	}
	return b
}
