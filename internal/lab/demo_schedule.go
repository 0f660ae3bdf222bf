package lab

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// DemoPeriod is after how long the demo's schedule comes round.
const DemoPeriod = 100 * time.Second

// Step is one entry of the demo's schedule. An empty name means all of them.
type Step struct {
	// From and To are counted from the start of a round.
	From, To                    time.Duration
	Provider, Connection, Model string
	Fault                       Fault
	// What happens at the provider, and what to Watch at the gateway that asks for the combo "demo".
	What, Watch string
}

// Where returns the step's key as people write it: "northwind/alpha", "northwind/*/aurora".
func (s Step) Where() string {
	where := s.Provider
	if s.Connection != "" {
		where += "/" + s.Connection
	} else if s.Model != "" {
		where += "/*"
	}
	if s.Model != "" {
		where += "/" + s.Model
	}
	return where
}

// DemoSchedule returns what fails in a round of the demo, in the order of time. What it does not
// name is well, and at any time at least one target of the combo "demo" is.
func DemoSchedule() []Step {
	return []Step{
		{
			From: 10 * time.Second, To: 30 * time.Second, Provider: "northwind", Connection: "alpha",
			Fault: RateLimited(RetryAfter(2 * time.Second)),
			What:  "429 with Retry-After: 2",
			Watch: "alpha cools for 2s, 2s, 4s, 8s, 16s; beta answers",
		},
		{
			From: 20 * time.Second, To: 35 * time.Second, Provider: "contoso",
			Fault: RateLimited(Hint{}),
			What:  "429 without a hint",
			Watch: "nothing, unless you ask for contoso/comet: gamma cools for 1s, 2s, 4s, 8s",
		},
		{
			From: 45 * time.Second, To: 65 * time.Second, Provider: "northwind",
			Fault: Unavailable(Hint{}),
			What:  "503 to everything",
			Watch: "breaker DEGRADED, then OPEN; HALF_OPEN every 10s; contoso answers",
		},
		{
			From: 65 * time.Second, To: 70 * time.Second, Provider: "northwind",
			Fault: SlowFirstContent(1500*time.Millisecond, 0),
			What:  "back, but slow",
			Watch: "one probe is let through, its first content closes the breaker",
		},
		{
			From: 75 * time.Second, To: 84 * time.Second, Provider: "northwind", Model: "aurora",
			Fault: ModelNotFound(),
			What:  "404, the model does not exist",
			Watch: "aurora is locked on both keys for 10s; borealis answers",
		},
		{
			From: 88 * time.Second, To: 96 * time.Second, Provider: "northwind", Connection: "beta",
			Fault: ErrorEvent(0, Error{Type: "overloaded_error", Code: "overloaded", Message: "northwind is overloaded."}),
			What:  "200, then an error as the first event",
			Watch: "alpha answers; the client notices nothing",
		},
	}
}

// DemoTable returns the schedule as a table for a terminal.
func DemoTable() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tWHERE\tWHAT HAPPENS\tWATCH")
	for _, s := range DemoSchedule() {
		fmt.Fprintf(w, "%s-%s\t%s\t%s\t%s\n", minutes(s.From), minutes(s.To), s.Where(), s.What, s.Watch)
	}
	fmt.Fprintf(w, "%s\teverywhere\tthe round begins again\n", minutes(DemoPeriod))
	w.Flush() // into memory
	return b.String()
}

func minutes(d time.Duration) string {
	s := int(d / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// scriptOf turns the schedule into a provider's script.
func scriptOf(provider string) []Phase {
	var script []Phase
	for _, s := range DemoSchedule() {
		if s.Provider == provider {
			script = append(script, Phase{From: s.From, To: s.To, Fault: s.Fault, Match: func(connection, model string) bool {
				return (s.Connection == "" || s.Connection == connection) && (s.Model == "" || s.Model == model)
			}})
		}
	}
	return script
}

// part is a provider of the demo.
type part struct {
	id                  string
	models, connections []string
	faulty              bool
}

func demoCast() []part {
	faults := part{id: "fault", connections: []string{"only"}, faulty: true}
	for _, f := range Faults() {
		faults.models = append(faults.models, f.Name)
	}
	return []part{
		{id: "northwind", models: []string{"aurora", "borealis"}, connections: []string{"alpha", "beta"}},
		{id: "contoso", models: []string{"comet"}, connections: []string{"gamma"}},
		faults,
	}
}
