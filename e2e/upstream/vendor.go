package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Dialects are the APIs that a vendor speaks, by the name that a provider's `dialect` has.
var Dialects = []string{"openai", "responses", "anthropic", "gemini"}

// Vendor is a provider of one dialect that plays scenes. A request names its scene as the end of
// the model's name: "anything-tools". What a scene needs from the request and does not find is
// answered with a 400 that says so, since a gateway has then lost it on the way.
type Vendor struct {
	// Root is the address without a path, URL the one with the API's version.
	Root, URL string
}

// wire is one dialect's form of the same things.
type wire interface {
	// read finds in a request what scenes ask for.
	read(body gjson.Result) seen
	// whole is an answer in one piece.
	whole(a answer) string
	// events are a streamed answer's, each ready to be sent. The last is what ends the answer.
	events(a answer) []string
	// failure is the event for an error after so many others.
	failure(after int) string
	// refusal is the body of an HTTP error.
	refusal(status int, message string) string
}

var wires = map[string]wire{
	"openai":    chatWire{},
	"responses": responsesWire{},
	"anthropic": messagesWire{},
	"gemini":    geminiWire{},
}

// NewVendor starts a vendor and stops it at the test's end. The key is the only one that it takes,
// in its dialect's header.
func NewVendor(t testing.TB, dialect, key string) *Vendor {
	t.Helper()
	return newVendor(t, dialect, key, inBody, inPath)
}

// NewContrary starts a vendor that answers whole what is to be streamed, and streams what is to be whole.
func NewContrary(t testing.TB, dialect, key string) *Vendor {
	t.Helper()
	not := func(which asked) asked {
		return func(r *http.Request, body gjson.Result) (string, bool) {
			model, stream := which(r, body)
			return model, !stream
		}
	}
	return newVendor(t, dialect, key, not(inBody), not(inPath))
}

// asked tells the model of a request, and whether its answer is to be streamed.
type asked func(*http.Request, gjson.Result) (model string, stream bool)

func newVendor(t testing.TB, dialect, key string, inBody, inPath asked) *Vendor {
	t.Helper()
	v, mux := wires[dialect], http.NewServeMux()
	version := "/v1"
	switch dialect {
	case "openai":
		mux.HandleFunc("POST /v1/chat/completions", play(v, key, bearer, inBody))
	case "responses":
		mux.HandleFunc("POST /v1/responses", play(v, key, bearer, inBody))
	case "anthropic":
		mux.HandleFunc("POST /v1/messages", play(v, key, keyOrBearer, inBody))
	case "gemini":
		version = "/v1beta"
		mux.HandleFunc("POST /v1beta/models/{call}", play(v, key, header("X-Goog-Api-Key"), inPath))
	default:
		t.Fatalf("upstream: no dialect %q", dialect)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("upstream: %s was asked for %s %s", dialect, r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	hs := httptest.NewServer(mux)
	t.Cleanup(hs.Close)
	return &Vendor{Root: hs.URL, URL: hs.URL + version}
}

func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// keyOrBearer: Anthropic's clients send keys in the one header or the other.
func keyOrBearer(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return bearer(r)
}

func header(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// inBody and inPath tell the model and whether the answer is to be streamed.
func inBody(_ *http.Request, body gjson.Result) (model string, stream bool) {
	return body.Get("model").String(), body.Get("stream").Bool()
}

func inPath(r *http.Request, _ gjson.Result) (model string, stream bool) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	return model, method == "streamGenerateContent"
}

// play answers requests of one dialect.
func play(v wire, key string, given func(*http.Request) string, which asked) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		body := gjson.ParseBytes(data)
		model, stream := which(r, body)
		refuse := func(status int, message string) {
			w.Header().Set("Content-Type", "application/json")
			if status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "30")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, v.refusal(status, message))
		}
		if err != nil || !body.IsObject() {
			refuse(http.StatusBadRequest, "the body is no JSON object")
			return
		}
		if given(r) != key {
			refuse(http.StatusUnauthorized, "the key is not known")
			return
		}
		s, ok := scenes[model[strings.LastIndex(model, "-")+1:]]
		if !ok {
			refuse(http.StatusNotFound, fmt.Sprintf("the model %q does not exist", model))
			return
		}
		if s.status != 0 {
			refuse(s.status, s.message)
			return
		}
		in := v.read(body)
		if lost := s.needs(in); lost != "" {
			refuse(http.StatusBadRequest, "the request came without "+lost)
			return
		}
		a := s.answer
		if len(in.results) > 0 {
			a = s.after
		}
		a.model = model
		if !stream {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, v.whole(a))
			return
		}
		events := v.events(a)
		if s.breaks {
			// The last words come, what ends the answer never does.
			last := slices.IndexFunc(events, func(e string) bool { return strings.Contains(e, lastWords) })
			events = append(events[:last+1:last+1], v.failure(last+1))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = io.WriteString(w, e)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// quoted is s as a JSON string.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always can
	}
	return string(b)
}

// event is one server-sent event; without a name it is data alone.
func event(name, data string) string {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return name + "data: " + data + "\n\n"
}
