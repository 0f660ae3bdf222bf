package translate

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/gemini"
	"omniroute/internal/dialect/neutral"
)

// embedding is a request for vectors on its way between OpenAI's API and Google's.
type embedding struct {
	toGemini bool
	base64   bool // an OpenAI client wants vectors in base64
	single   bool // a Gemini client has asked for one vector, not for a list
	texts    int  // how many vectors are to come
}

type openaiEmbed struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	EncodingFormat string          `json:"encoding_format,omitempty"`
	Dimensions     *int64          `json:"dimensions,omitempty"`
}

type geminiEmbed struct {
	Model                string        `json:"model,omitempty"`
	Content              geminiContent `json:"content"`
	OutputDimensionality *int64        `json:"outputDimensionality,omitempty"`
}

type geminiContent struct {
	Parts []geminiText `json:"parts"`
}

type geminiText struct {
	Text *string `json:"text"`
}

func newEmbedding(from, to neutral.Codec, asked *dialect.Request, model string) (*embedding, *neutral.Outgoing, error) {
	switch {
	case from.Name() == "openai" && to.Name() == "gemini":
		return embedByGemini(asked, model)
	case from.Name() == "gemini" && to.Name() == "openai":
		return embedByOpenAI(asked, model)
	}
	return nil, nil, neutral.Unsupported("model", "is served by the %s dialect, which has no embeddings", to.Name())
}

func embedByGemini(asked *dialect.Request, model string) (*embedding, *neutral.Outgoing, error) {
	var in openaiEmbed
	if err := neutral.DecodeRequest(asked.Body, &in); err != nil {
		return nil, nil, err
	}
	var texts []string
	if neutral.First(in.Input) == '"' {
		texts = []string{""}
		if err := json.Unmarshal(in.Input, &texts[0]); err != nil {
			return nil, nil, neutral.Unsupported("input", "is no text")
		}
	} else if err := json.Unmarshal(in.Input, &texts); err != nil {
		return nil, nil, neutral.Unsupported("input", "is not a text or a list of texts; tokens mean nothing to another model")
	}
	if len(texts) == 0 {
		return nil, nil, neutral.Unsupported("input", "has no text")
	}
	model = strings.TrimPrefix(model, "models/")
	out := struct {
		Requests []geminiEmbed `json:"requests"`
	}{}
	for _, text := range texts {
		out.Requests = append(out.Requests, geminiEmbed{"models/" + model, geminiContent{[]geminiText{{&text}}}, in.Dimensions})
	}
	return &embedding{toGemini: true, base64: in.EncodingFormat == "base64", texts: len(texts)},
		&neutral.Outgoing{Path: "/models/" + model + ":batchEmbedContents", Body: neutral.Encode(out)}, nil
}

func embedByOpenAI(asked *dialect.Request, model string) (*embedding, *neutral.Outgoing, error) {
	var in struct {
		geminiEmbed
		Requests []geminiEmbed `json:"requests"`
	}
	if err := neutral.DecodeRequest(gemini.Camel(asked.Body), &in); err != nil {
		return nil, nil, err
	}
	e := &embedding{}
	list := in.Requests
	if !strings.HasSuffix(asked.Path, ":batchEmbedContents") {
		e.single, list = true, []geminiEmbed{in.geminiEmbed}
	}
	out := openaiEmbed{Model: model, EncodingFormat: "float"}
	var texts []string
	for i, r := range list {
		at := ""
		if !e.single {
			at = fmt.Sprintf("requests[%d].", i)
		}
		text, err := r.Content.text(at + "content")
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, text)
		if d := r.OutputDimensionality; i == 0 {
			out.Dimensions = d
		} else if (d == nil) != (out.Dimensions == nil) || d != nil && *d != *out.Dimensions {
			return nil, nil, neutral.Unsupported(at+"outputDimensionality", "is not the one of the other requests, and OpenAI's API has one for all")
		}
	}
	if len(texts) == 0 {
		return nil, nil, neutral.Unsupported("requests", "has no text")
	}
	e.texts = len(texts)
	out.Input = neutral.Encode(texts)
	return e, &neutral.Outgoing{Path: "/embeddings", Body: neutral.Encode(out)}, nil
}

// text joins the texts of a content, which has nothing else.
func (c *geminiContent) text(field string) (string, error) {
	var b strings.Builder
	for i, p := range c.Parts {
		if p.Text == nil {
			return "", neutral.Unsupported(fmt.Sprintf("%s.parts[%d]", field, i), "is no text, and OpenAI's API makes vectors of texts only")
		}
		b.WriteString(*p.Text)
	}
	if len(c.Parts) == 0 {
		return "", neutral.Unsupported(field, "has no text")
	}
	return b.String(), nil
}

type openaiVector struct {
	Object    string          `json:"object"`
	Index     int             `json:"index"`
	Embedding json.RawMessage `json:"embedding"`
}

type geminiVector struct {
	Values json.RawMessage `json:"values"`
}

func (e *embedding) answer(body []byte, model string) ([]byte, error) {
	if e.toGemini {
		var in struct {
			Embeddings    []geminiVector
			UsageMetadata struct{ PromptTokenCount int }
		}
		if neutral.Decode(body, &in) != nil || in.Embeddings == nil {
			return nil, fmt.Errorf("the answer holds no embeddings")
		}
		if err := e.complete(len(in.Embeddings)); err != nil {
			return nil, err
		}
		tokens := in.UsageMetadata.PromptTokenCount
		out := struct {
			Object string         `json:"object"`
			Data   []openaiVector `json:"data"`
			Model  string         `json:"model"`
			Usage  map[string]int `json:"usage"`
		}{"list", []openaiVector{}, model, map[string]int{"prompt_tokens": tokens, "total_tokens": tokens}}
		for i, v := range in.Embeddings {
			vector, err := encoded(v.Values, e.base64)
			if err != nil {
				return nil, err
			}
			out.Data = append(out.Data, openaiVector{"embedding", i, vector})
		}
		return neutral.Encode(out), nil
	}
	var in struct{ Data []openaiVector }
	if neutral.Decode(body, &in) != nil || in.Data == nil {
		return nil, fmt.Errorf("the answer holds no embeddings")
	}
	if err := e.complete(len(in.Data)); err != nil {
		return nil, err
	}
	list := make([]geminiVector, len(in.Data))
	for place, v := range in.Data {
		vector, err := encoded(v.Embedding, false)
		if err != nil {
			return nil, err
		}
		if v.Index >= 0 && v.Index < len(list) && place != v.Index && list[v.Index].Values == nil {
			place = v.Index
		}
		list[place].Values = vector
	}
	if e.single && len(list) == 1 {
		return neutral.Encode(map[string]any{"embedding": list[0]}), nil
	}
	return neutral.Encode(map[string]any{"embeddings": list}), nil
}

// complete tells an answer that lacks vectors: clients go by their places.
func (e *embedding) complete(vectors int) error {
	if vectors != e.texts {
		return fmt.Errorf("the answer holds %d embeddings for %d texts", vectors, e.texts)
	}
	return nil
}

// encoded returns a vector in the form that is wanted: base64 of little-endian 32-bit floats,
// or a list of numbers.
func encoded(raw json.RawMessage, wantBase64 bool) (json.RawMessage, error) {
	is64 := neutral.First(raw) == '"'
	switch {
	case is64 == wantBase64:
		return raw, nil
	case is64:
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(data)%4 != 0 {
			return nil, fmt.Errorf("an embedding is not base64 of 32-bit floats")
		}
		vector := make([]float32, len(data)/4)
		for i := range vector {
			f := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
			if f != f || math.IsInf(float64(f), 0) {
				return nil, fmt.Errorf("an embedding holds what is no number")
			}
			vector[i] = f
		}
		return neutral.Encode(vector), nil
	}
	var vector []float32
	if err := json.Unmarshal(raw, &vector); err != nil {
		return nil, fmt.Errorf("an embedding is no list of numbers")
	}
	data := make([]byte, 0, 4*len(vector))
	for _, f := range vector {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return neutral.Encode(base64.StdEncoding.EncodeToString(data)), nil
}

// FitEmbeddings returns an answer with vectors in the form that an OpenAI client has asked for,
// since some services know only one, and old clients read the other as nothing. An answer that
// fits is returned as it is.
func FitEmbeddings(asked *dialect.Request, body []byte) []byte {
	var in openaiEmbed
	if neutral.Decode(asked.Body, &in) != nil {
		return body
	}
	var members map[string]json.RawMessage
	var data []map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || json.Unmarshal(members["data"], &data) != nil {
		return body
	}
	changed := false
	for _, v := range data {
		raw := v["embedding"]
		if c := neutral.First(raw); c != '"' && c != '[' || (c == '"') == (in.EncodingFormat == "base64") {
			continue
		}
		vector, err := encoded(raw, in.EncodingFormat == "base64")
		if err != nil {
			return body
		}
		v["embedding"], changed = vector, true
	}
	if !changed {
		return body
	}
	members["data"] = neutral.Encode(data)
	return neutral.Encode(members)
}
