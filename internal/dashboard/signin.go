package dashboard

import (
	"bytes"
	"errors"
	"html/template"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"omniroute/internal/admin"
	"omniroute/internal/loopback"
	"omniroute/resilience"
)

const (
	cookieName = "omniroute_session"
	// maxForm bounds the sign-in form, in bytes.
	maxForm = 8 << 10
)

var pages = template.Must(template.ParseFS(files, "assets/*.html"))

// shell is what the pages are made of. Data come later, over the stream.
type shell struct {
	Assets string // the folder of the scripts and styles
	// CSRF is the session's token; empty where nobody signs in.
	CSRF     string
	SignedIn bool
	Problem  string
}

func render(w http.ResponseWriter, status int, name string, s shell) {
	s.Assets = assetsPath
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, s); err != nil { // only a bug: the templates are ours
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// page shows the dashboard, or the way in.
func (d *Dashboard) page(w http.ResponseWriter, r *http.Request) {
	x, err := d.who(r)
	var p *admin.Problem
	switch {
	case err == nil && x == nil:
		render(w, http.StatusOK, "dashboard.html", shell{})
	case err == nil:
		render(w, http.StatusOK, "dashboard.html", shell{CSRF: x.csrf(), SignedIn: true})
	case errors.As(err, &p) && p.Status == http.StatusForbidden:
		render(w, p.Status, "closed.html", shell{Problem: p.Message})
	default:
		render(w, http.StatusOK, "signin.html", shell{})
	}
}

// signIn takes the form of the sign-in page.
func (d *Dashboard) signIn(w http.ResponseWriter, r *http.Request) {
	token := d.o.Config().AdminToken
	if token.Empty() {
		http.Redirect(w, r, "/dashboard", http.StatusSeeOther)
		return
	}
	if loopback.ForeignPage(r) {
		render(w, http.StatusForbidden, "signin.html", shell{Problem: "The form came from another site. Sign in here."})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		render(w, http.StatusBadRequest, "signin.html", shell{Problem: "The form could not be read. Send it again."})
		return
	}
	right, wait := d.o.Admin.Guess(r.RemoteAddr, strings.TrimSpace(r.PostForm.Get("token")))
	if wait > 0 {
		seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
		w.Header().Set("Retry-After", seconds)
		render(w, http.StatusTooManyRequests, "signin.html", shell{Problem: "Too many wrong tokens. Try again in " + seconds + " seconds."})
		return
	}
	if !right {
		render(w, http.StatusUnauthorized, "signin.html", shell{Problem: "That is not the admin token of this gateway."})
		return
	}
	x, value := d.sessions.open(token, time.Now())
	http.SetCookie(w, cookie(r, value, x.expires))
	d.log.Info("an operator has signed in to the dashboard", "peer", r.RemoteAddr)
	d.o.Admin.Note("dashboard", r.RemoteAddr, "sign_in", resilience.Key{}, "")
	http.Redirect(w, r, "/dashboard", http.StatusSeeOther)
}

// signOut ends the session.
func (d *Dashboard) signOut(w http.ResponseWriter, r *http.Request) {
	x, err := d.who(r)
	if err == nil && x != nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if loopback.ForeignPage(r) || !x.matches(r.PostFormValue("csrf")) {
			admin.WriteError(w, &admin.Problem{Status: http.StatusForbidden, Code: "forbidden", Message: "the request does not come from the dashboard's own page"})
			return
		}
		d.sessions.revoke(*x, time.Now())
		d.log.Info("an operator has signed out of the dashboard", "peer", r.RemoteAddr)
		d.o.Admin.SignOut(r.RemoteAddr, x.id)
	}
	http.SetCookie(w, cookie(r, "", time.Unix(1, 0)))
	http.Redirect(w, r, "/dashboard", http.StatusSeeOther)
}

// cookie is sent to the dashboard alone, by its own pages alone, out of reach of scripts, and over TLS
// alone where the browser came so. That a proxy says so is believed: who lies, signs himself out.
func cookie(r *http.Request, value string, expires time.Time) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/dashboard", Expires: expires,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
}
