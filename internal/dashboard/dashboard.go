// Package dashboard is the operator's page at /dashboard: what is out of service, why, until when,
// what it costs the users, and the means to act.
//
// It decides nothing: it shows what the admin API knows and calls it for every change. Everything
// that it sends is in the program; the browser asks nobody else. It never sends a secret, and what
// providers and clients wrote reaches the browser as text only, never as markup.
package dashboard

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"omniroute/internal/admin"
	"omniroute/internal/config"
	"omniroute/internal/loopback"
)

// Options are what a Dashboard works with. Admin and Config are needed.
type Options struct {
	Admin *admin.Admin
	// Config returns the configuration in force; it may change at any time.
	Config func() *config.Config
	// Logger gets a line for each sign-in and each wrong token. Defaults to slog.Default.
	Logger *slog.Logger
	// Pace is how often at most the page is told of changes, Heartbeat how often it is told that the
	// gateway lives. Default to 500ms and 5s.
	Pace, Heartbeat time.Duration
}

// Dashboard is the handler of /dashboard and all below it. It is safe for concurrent use. Close it
// when the program ends.
type Dashboard struct {
	o        Options
	log      *slog.Logger
	mux      *http.ServeMux
	sessions sessions
	feed     feed
	readers  readers
}

// New returns a Dashboard.
func New(o Options) *Dashboard {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Pace == 0 {
		o.Pace = 500 * time.Millisecond
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 5 * time.Second
	}
	d := &Dashboard{o: o, log: o.Logger, mux: http.NewServeMux()}
	d.feed.init(o)
	d.readers.init()
	d.mux.HandleFunc("GET /dashboard", d.page)
	d.mux.HandleFunc("GET /dashboard/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/dashboard", http.StatusSeeOther)
	})
	d.mux.HandleFunc("GET /dashboard/assets/{version}/{name}", serveAsset)
	d.mux.HandleFunc("POST /dashboard/sign-in", d.signIn)
	d.mux.HandleFunc("POST /dashboard/sign-out", d.signOut)
	d.mux.HandleFunc("GET /dashboard/stream", d.stream)
	d.mux.HandleFunc("/dashboard/api/", d.api)
	return d
}

// Close ends the live streams, so that a server can shut down.
func (d *Dashboard) Close() { d.readers.close() }

// policy lets the page load what the program brings and nothing else: no inline script or style, no
// other host, no frame around it, and no markup from strings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP answers one request.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser sends our own forms as from nowhere
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	d.mux.ServeHTTP(w, r)
}

// who returns the session of a request, nil where no token is set and the request is this machine's
// own, or a *admin.Problem.
func (d *Dashboard) who(r *http.Request) (*session, error) {
	cfg := d.o.Config()
	if cfg.AdminToken.Empty() {
		return nil, admin.Local(r)
	}
	if c, err := r.Cookie(cookieName); err == nil {
		now := time.Now()
		if x, ok := d.sessions.check(cfg.AdminToken, c.Value, now); ok {
			d.sessions.learn(now, func(since time.Time) (map[string]time.Time, bool) { return d.o.Admin.SignedOut(r.Context(), since) })
			if !d.sessions.over(x.id) {
				return &x, nil
			}
		}
	}
	return nil, &admin.Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Message: "you are not signed in, or no longer; sign in at /dashboard"}
}

// csrfHeader is where the page puts the token that every change must carry.
const csrfHeader = "X-Omniroute-Csrf"

// api passes a call of the page on to the admin API.
func (d *Dashboard) api(w http.ResponseWriter, r *http.Request) {
	x, err := d.who(r)
	if err == nil {
		err = changeAllowed(r, x)
	}
	if err != nil {
		admin.WriteError(w, err)
		return
	}
	to := r.Clone(r.Context())
	to.URL.Path = "/admin/v1/" + strings.TrimPrefix(r.URL.Path, "/dashboard/api/")
	to.URL.RawPath = ""
	d.o.Admin.Open().ServeHTTP(w, to)
}

// changeAllowed returns nil for what changes nothing, and for a change that our own page sends.
func changeAllowed(r *http.Request, x *session) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	const why = "the request does not come from the dashboard's own page; load it anew"
	forbidden := &admin.Problem{Status: http.StatusForbidden, Code: "forbidden", Message: why}
	switch {
	case loopback.ForeignPage(r), x != nil && !x.matches(r.Header.Get(csrfHeader)):
		return forbidden
	case r.Header.Get("Content-Type") != "application/json": // no form of another site can send that
		return forbidden
	}
	return nil
}
