package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

//go:embed assets
var files embed.FS

// contentTypes of what is served, so that none depends on the machine's own table. The pages'
// templates are not served.
var contentTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// version names what is in the assets: another program has another, so that a browser may keep them
// for ever, and a page that is open over an upgrade knows that it is old.
var version = func() string {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		h.Write([]byte(name))
		h.Write(b)
		return err
	})
	if err != nil { // files in the program can be read
		panic(err)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}()

var assetsPath = "/dashboard/assets/" + version

// serveAsset sends a script, style or picture. They hold nothing secret, and the sign-in page needs
// them.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	kind := contentTypes[path.Ext(name)]
	body, err := files.ReadFile("assets/" + name)
	if kind == "" || err != nil {
		http.NotFound(w, r)
		return
	}
	if r.PathValue("version") == version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body)
}
