package gemini

import (
	"encoding/json"
	"strings"

	"omniroute/internal/dialect/neutral"
)

// jsonSchema returns a schema in the API's own form, an excerpt of OpenAPI, as JSON schema.
func jsonSchema(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return raw
	}
	delete(members, "propertyOrdering")
	if kind, ok := word(members["type"]); ok {
		kind = strings.ToLower(kind)
		members["type"] = neutral.Encode(kind)
		if string(members["nullable"]) == "true" {
			members["type"] = neutral.Encode([]string{kind, "null"})
		}
	}
	delete(members, "nullable")
	for _, one := range []string{"items", "additionalProperties"} {
		if m, ok := members[one]; ok {
			members[one] = jsonSchema(m)
		}
	}
	if raw, ok := members["properties"]; ok {
		var named map[string]json.RawMessage
		if json.Unmarshal(raw, &named) == nil {
			for k, v := range named {
				named[k] = jsonSchema(v)
			}
			members["properties"] = neutral.Encode(named)
		}
	}
	for _, several := range []string{"anyOf", "prefixItems"} {
		var list []json.RawMessage
		if json.Unmarshal(members[several], &list) == nil && list != nil {
			for i := range list {
				list[i] = jsonSchema(list[i])
			}
			members[several] = neutral.Encode(list)
		}
	}
	for _, count := range []string{"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"} {
		if digits, ok := word(members[count]); ok { // int64 is a string in Google's JSON
			members[count] = json.RawMessage(digits)
			if !json.Valid(members[count]) {
				delete(members, count)
			}
		}
	}
	return neutral.Encode(members)
}

func word(raw json.RawMessage) (string, bool) {
	if neutral.First(raw) != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
