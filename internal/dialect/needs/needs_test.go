package needs

import (
	"encoding/json"
	"strings"
	"testing"

	"omniroute/failover"
)

func TestRead(t *testing.T) {
	t.Parallel()
	picture := strings.Repeat("QUJD", 5000)
	cases := map[string]struct {
		body string
		want failover.Needs
	}{
		"text":               {`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", 8000) + `"}]}`, failover.Needs{Input: 10002}},
		"limits of answers":  {`{"max_tokens":100,"max_completion_tokens":300,"input":""}`, failover.Needs{Input: 1, Output: 300}},
		"responses":          {`{"max_output_tokens":7,"text":{"format":{"type":"json_schema","schema":{}}},"tools":[{"type":"web_search"}]}`, failover.Needs{Input: 6, Output: 7, Schema: true, Tools: true}},
		"chat schema":        {`{"response_format":{"type":"json_schema","json_schema":{"name":"x"}}}`, failover.Needs{Schema: true}},
		"any JSON":           {`{"response_format":{"type":"json_object"},"tools":[]}`, failover.Needs{}},
		"anthropic schema":   {`{"output_config":{"format":{"type":"json_schema"}}}`, failover.Needs{Schema: true}},
		"gemini":             {`{"generationConfig":{"maxOutputTokens":9,"responseSchema":{"type":"OBJECT"}},"tools":[{"functionDeclarations":[]}]}`, failover.Needs{Input: 7, Output: 9, Schema: true, Tools: true}},
		"openai image":       {`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture + `"}}]}]}`, failover.Needs{Input: 800, Images: true}},
		"responses image":    {`{"input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,` + picture + `"}]}]}`, failover.Needs{Input: 800, Images: true}},
		"anthropic image":    {`{"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}}]}]}`, failover.Needs{Input: 803, Images: true}},
		"gemini image":       {`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + picture + `"}}]}]}`, failover.Needs{Input: 800, Images: true}},
		"an image in words":  {`{"messages":[{"content":"use {\"type\": \"image_url\"} here"}]}`, failover.Needs{Input: 9}},
		"a sound":            {`{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"` + picture + `","format":"wav"}}]}]}`, failover.Needs{Input: 2}},
		"a tool about these": {`{"tools":[{"function":{"parameters":{"properties":{"image_url":{"type":"string"}}}}}]}`, failover.Needs{Input: 19, Tools: true}},
		"not JSON":           {"--boundary\r\n", failover.Needs{}},
		"broken":             {`{"messages":[`, failover.Needs{}},
		"an odd limit":       {`{"max_tokens":"many","max_output_tokens":-4}`, failover.Needs{}},
		"nothing":            {``, failover.Needs{}},
	}
	for name, c := range cases {
		if got := Read([]byte(c.body)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// FuzzRead holds that nothing makes it panic, and that an estimate is never more than the bytes.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"messages":[{"content":[{"type":"image"}]}],"max_tokens":5}`))
	f.Add([]byte(`{"generationConfig":[1],"tools":{"a":1},"text":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n := Read(body)
		if !json.Valid(body) && n != (failover.Needs{}) {
			t.Errorf("something is known of what is not JSON: %+v", n)
		}
		if n.Input < 0 || n.Output < 0 || n.Input > int64(len(body))+imageTokens*int64(strings.Count(string(body), "mage")+strings.Count(string(body), `\u`)) {
			t.Errorf("%d bytes are taken for %d tokens", len(body), n.Input)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	body := []byte(`{"model":"m","tools":[` + strings.Repeat(`{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}},`, 100) +
		`{}],"messages":[` + strings.Repeat(`{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("some words of a question. ", 60)+`"}]},`, 50) + `{}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Read(body)
	}
}

// TestGlanceMissesNothing: what a glance does not see is not there.
func TestGlanceMissesNothing(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"x"}}]}],"max_tokens" : 12}`,
		`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":""}}]}],"generationConfig":{"maxOutputTokens":9,"responseSchema":{}}}`,
		`{"input":[{"content":[{"type":"input_image"}]}],"text":{"format":{"type":"json_schema"}},"tools":[{}],"max_output_tokens":7}`,
		`{"functions":[{}],"max_completion_tokens":3,"max_tokens":"no"}`,
	} {
		n, g := Read([]byte(body)), Glance([]byte(body))
		if n.Images && !g.Images || n.Tools && !g.Tools || n.Schema && !g.Schema || g.Output < n.Output {
			t.Errorf("%s: read %+v, seen %+v", body, n, g)
		}
	}
}
