package dialect

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// form writes a form with the standard library: pairs of names and values, a name with an
// "@" being a file.
func form(t *testing.T, pairs ...string) (contentType string, body []byte) {
	t.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for i := 0; i < len(pairs); i += 2 {
		if name, isFile := strings.CutPrefix(pairs[i], "@"); isFile {
			part, err := w.CreateFormFile(name, "speech.wav")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(part, pairs[i+1]); err != nil {
				t.Fatal(err)
			}
		} else if err := w.WriteField(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), buf.Bytes()
}

// fields reads a form with the standard library.
func fields(t *testing.T, contentType string, body []byte) map[string][]string {
	t.Helper()
	_, boundary, _ := strings.Cut(contentType, "boundary=")
	f, err := multipart.NewReader(bytes.NewReader(body), boundary).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return f.Value
}

func TestReadMultipart(t *testing.T) {
	t.Parallel()
	contentType, body := form(t, "@file", "RIFF\r\n--not-the-boundary\r\nname=\"model\"", "model", "whisper", "language", "", "stream", "true", "@model", "a file of that name")
	r, err := ReadMultipart("/v1/audio/transcriptions", contentType, body)
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "whisper" || !r.Stream || r.Operation != OpOther {
		t.Errorf("%+v", r)
	}
	_, out := r.ForModel("acme-\"ears\"")
	want := map[string][]string{"model": {"acme-\"ears\""}, "language": {""}, "stream": {"true"}}
	if diff := cmp.Diff(want, fields(t, contentType, out)); diff != "" {
		t.Error(diff)
	}
	if len(out) != len(body)-len("whisper")+len("acme-\"ears\"") {
		t.Error("more than the model changed")
	}
}

func TestReadMultipartRefuses(t *testing.T) {
	t.Parallel()
	contentType, body := form(t, "language", "en")
	for name, c := range map[string]struct {
		contentType, body, want string
	}{
		"no boundary": {"multipart/form-data", "x", "The content type must be multipart/form-data with a boundary."},
		"not a form":  {"application/json", "{}", "The content type must be multipart/form-data with a boundary."},
		"no model":    {contentType, string(body), "The form field model is missing: name a combo, a provider/model or a model."},
		"nothing":     {contentType, "", "The form field model is missing: name a combo, a provider/model or a model."},
		"no end":      {"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm", "The form cannot be read: the part at byte 5 has no end."},
		"no header":   {"multipart/form-data; boundary=b", "--b\r\nm\r\n--b--", "The form cannot be read: a part at byte 5 has no header."},
		"empty model": {"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=model\r\n\r\n\r\n--b--", "The form field model is empty: name a combo, a provider/model or a model."},
	} {
		_, err := ReadMultipart("/p", c.contentType, []byte(c.body))
		var fault *RequestError
		if !errors.As(err, &fault) || fault.Message != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadMultipart(f *testing.F) {
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--"))
	f.Add([]byte("--b \r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n\r\n--b\r\n\r\n\r\n--b--\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		const contentType = "multipart/form-data; boundary=b"
		r, err := ReadMultipart("/p", contentType, body)
		if err != nil {
			return
		}
		_, out := r.ForModel("new")
		again, err := ReadMultipart("/p", contentType, out)
		if err != nil || again.Model != "new" || len(again.BodyModels) != len(r.BodyModels) {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
	})
}

func TestOpenReadsTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"model":"x"}`, `{"a":[1,2,3],"model":"x","b":{},"model":"y","c":"` + strings.Repeat("z", 5000) + `"}`} {
		r, err := ReadJSON(OpGenerate, "/p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range []string{"x", "other"} {
			_, want := r.ForModel(model)
			path, body := r.Open(model)
			if path != "/p" || body.Size() != int64(len(want)) {
				t.Errorf("%s, %d bytes, want %d", path, body.Size(), len(want))
			}
			if err := iotest.TestReader(body, want); err != nil {
				t.Error(err)
			}
			_, body = r.Open(model)
			var out bytes.Buffer
			if n, err := body.WriteTo(&out); err != nil || n != body.Size() || !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%d, %v, %s", n, err, out.Bytes())
			}
			if err := body.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
