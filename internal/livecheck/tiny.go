package livecheck

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"omniroute/internal/catalog"
	"omniroute/internal/config"
)

// fewTokens is how long an answer may get. Some services refuse less.
const fewTokens = 16

// tiny returns the smallest request that a model answers, in a dialect.
func tiny(d catalog.Dialect, p *config.Provider, model string) (path string, body []byte) {
	type object = map[string]any
	messages := []object{{"role": "user", "content": "Hi"}}
	var request object
	switch d {
	case catalog.Anthropic:
		path, request = "/messages", object{"model": model, "max_tokens": fewTokens, "messages": messages}
	case catalog.Responses:
		path, request = "/responses", object{"model": model, "max_output_tokens": fewTokens, "input": "Hi", "store": false}
	case catalog.Gemini:
		path = "/models/" + strings.TrimPrefix(model, "models/") + ":generateContent"
		request = object{"contents": []object{{"role": "user", "parts": []object{{"text": "Hi"}}}}, "generationConfig": object{"maxOutputTokens": fewTokens}}
	default:
		limit := "max_tokens"
		if p.Known != nil && (p.Known.ID == "openai" || p.Known.ID == "azure") {
			limit = "max_completion_tokens" // their newer models refuse the old name, and everybody else knows only that
		}
		path, request = "/chat/completions", object{"model": model, limit: fewTokens, "messages": messages}
	}
	body, err := json.Marshal(request)
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return path, body
}

// notChat are parts of names of models that do other things than chat.
var notChat = []string{"embed", "whisper", "tts", "dall-e", "image", "moderation", "audio", "realtime", "transcribe", "rerank", "ocr", "sora", "veo", "imagen",
	"guard", "speech", "video", "aqa", "babbage", "davinci", "search", "instruct"}

// askable returns the first model of a provider's list that looks as if it could chat, else the
// first one, in any dialect's shape of list; "" where there is none.
func askable(list []byte) string {
	first := ""
	for _, m := range gjson.GetManyBytes(list, "data.#.id", "models.#.name", "#.id") {
		for _, id := range m.Array() {
			name := strings.TrimPrefix(id.String(), "models/")
			switch {
			case name == "":
				continue
			case first == "":
				first = name
			}
			if !doesOther(name) {
				return name
			}
		}
	}
	return first
}

func doesOther(model string) bool {
	model = strings.ToLower(model)
	for _, part := range notChat {
		if strings.Contains(model, part) {
			return true
		}
	}
	return false
}
