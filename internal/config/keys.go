package config

import (
	"sync"

	"omniroute/internal/catalog"
)

// root describes every key. The check of a file, the JSON Schema and the reference page are read off it.
var root = spec{kind: kindObject, fields: []field{
	{
		key: "listen", spec: spec{kind: kindString}, def: "127.0.0.1:20128",
		doc: "Where clients connect: HOST:PORT, or unix:PATH. An address that other machines can reach needs client_keys and admin_token.",
	},
	{
		key: "tls", spec: spec{kind: kindObject, fields: tlsFields},
		doc: "Serve `listen` over TLS, HTTP/2 included. The files are read again when they change, without dropping a connection.",
	},
	{
		key: "client_keys", spec: spec{kind: kindList, nonEmpty: true, elem: &spec{kind: kindSecret, alternative: &spec{kind: kindObject, fields: clientFields}}},
		doc:     "The keys that clients may present, each as it is or as sha256: and 64 hex digits (`omniroute key` prints both), or a mapping that also says what its callers may ask for. Absent: clients need no key, which is for loopback listeners only.",
		example: `["${OMNIROUTE_CLIENT_KEY}"]`,
	},
	{
		key: "admin_token", spec: spec{kind: kindSecret},
		doc:     "The token of the admin API. Absent: it answers callers from loopback only.",
		example: `"${OMNIROUTE_ADMIN_TOKEN}"`,
	},
	{
		key: "store", spec: spec{kind: kindURL}, def: "sqlite:omniroute.db",
		doc: "Where exclusions are kept over a restart: sqlite:PATH, from the configuration's folder; redis://[USER:PASSWORD@]HOST:PORT/DB (rediss:// with TLS), which several gateways share; or memory: for nowhere. Behind a server ?prefix=NAME: keeps clusters apart and ?ca=FILE names its certificate authority.",
	},
	{key: "max_body", spec: spec{kind: kindSize, min: 1}, def: "64MiB", doc: "The largest request body. Larger ones are answered 413."},
	{key: "max_bodies", spec: spec{kind: kindSize, min: 1}, def: "1GiB", doc: "What the bodies of all requests may come to that wait for their answers. What does not fit is answered 503 `queue_full`. Of several `client_keys` each must leave as much free as it holds, so that none takes the room of the others."},
	{key: "shutdown_grace", spec: spec{kind: kindDuration}, def: "30s", doc: "How long running requests may take after a stop was asked for."},
	{
		key: "metrics_listen", spec: spec{kind: kindString},
		doc:     "An address of its own for /metrics, as HOST:PORT or unix:PATH. Nothing else is answered there, and no key is asked for; `listen` then answers 404 for /metrics. Empty: /metrics is on `listen`.",
		example: "127.0.0.1:9464",
	},
	{
		key: "record", spec: spec{kind: kindObject, fields: []field{
			{key: "file", spec: spec{kind: kindString}, def: "outcomes.jsonl", doc: "Where to, from the configuration's folder. The older half of what is kept is beside it, with .1 behind its name."},
			{key: "max_size", spec: spec{kind: kindSize, min: 1}, def: "64MiB", doc: "How large both halves together may become; the oldest is let go."},
		}},
		doc: "Records what became of each request (names, times and verdicts; no prompt, answer, key or address) for `omniroute simulate --replay`. Absent: nothing is recorded.",
	},
	{
		key: "providers", spec: spec{kind: kindMap, nonEmpty: true, elem: &spec{kind: kindObject, fields: providerFields}}, required: true,
		doc: "The upstream services by name. A name that is known brings dialect, address and error rules; any other needs base_url. Names are letters, digits, dot, dash and underscore.",
	},
	{
		key: "combos", spec: spec{kind: kindMap, elem: &spec{kind: kindObject, fields: comboFields}},
		doc: "Named lists of targets. Clients ask for a combo as if it were a model.",
	},
	{
		key: "alerts", spec: spec{kind: kindList, elem: &spec{kind: kindObject, fields: alertFields}},
		doc: "Who is told over a webhook when something needs people, and when it is over.",
	},
	{
		key: "tracing", spec: spec{kind: kindObject, fields: tracingFields},
		doc: "Sends what became of requests to a collector of OpenTelemetry. Absent: nothing is traced, and it costs nothing.",
	},
	{
		key: "affinity", spec: spec{kind: kindObject, fields: affinityFields},
		doc: "How long a session stays with the connection that has its prompts cached. A session is named by the header x-session-id, or by a field of the request; without a name there is none.",
	},
	{
		key: "resilience", spec: spec{kind: kindObject, fields: resilienceFields},
		doc: "When providers, connections and models are taken out of service, and for how long. A provider may have its own resilience, merged over this one key by key.",
	},
	{
		key: "relay", spec: spec{kind: kindObject, fields: relayFields},
		doc: "The budget and the timers of a request. A combo may have its own of these keys, but for connect_timeout and queue.",
	},
	{
		key: "error_rules", spec: spec{kind: kindList, elem: &spec{kind: kindObject, fields: ruleFields}},
		doc: "What refusals of your providers mean. They are asked before the built-in rules, in this order; the first that matches counts.",
	},
}}

var clientFields = []field{
	{key: "key", spec: spec{kind: kindSecret}, required: true, doc: "The key, as it is or as sha256: and 64 hex digits.", example: `"${TEAM_KEY}"`},
	{key: "name", spec: spec{kind: kindString}, doc: "Who it is, for people.", example: "search-team"},
	{
		key: "models", spec: spec{kind: kindList, nonEmpty: true, elem: &spec{kind: kindString}},
		doc:     "What its callers may ask for and see in GET /v1/models: combos, models or provider/model; * stands for anything. Whatever else is as unknown to them as a name that does not exist. Default: everything.",
		example: `[coding, "openai/*"]`,
	},
	{
		key: "targets", spec: spec{kind: kindList, nonEmpty: true, elem: &spec{kind: kindString}},
		doc:     "The provider/model that their requests may go to, whatever they ask for: others are left out of every combo. Default: all.",
		example: `["anthropic/*", acme/acme-large]`,
	},
	{
		key: "rate", spec: spec{kind: kindObject, fields: rateFields},
		doc:     "How many requests they may send, all callers of the key together; those beyond are answered 429 with the time to wait. After a silence all may come at once. Each gateway counts for itself. Default: any number.",
		example: "{requests: 600, per: 1m}",
	},
}

// SessionFields are the members of a request's body that may name a session.
func SessionFields() []string {
	return []string{"session_id", "prompt_cache_key", "user", "metadata.user_id"}
}

var affinityFields = []field{
	{
		key: "fields", spec: spec{kind: kindList, elem: &spec{kind: kindEnum, enum: SessionFields()}},
		doc:     "Which members of a request's body name its session where the header does not; the first that is there counts. Default: none.",
		example: "[session_id, prompt_cache_key]",
	},
	{key: "forget_after", spec: spec{kind: kindDuration, min: positive}, def: "1h", doc: "How long a session without a request is remembered."},
	{key: "sessions", spec: spec{kind: kindInt, min: 1, max: 1e7}, def: "10000", doc: "How many sessions are remembered at most; a session counts once for each place where something is chosen."},
}

var providerFields = []field{
	{
		key: "dialect", spec: orList(spec{kind: kindEnum, enum: dialectNames()}),
		doc: "The format that the service speaks, or a list of them, the preferred first. Default: what is known of the name, else openai.",
	},
	{
		key: "base_url", spec: spec{kind: kindURL},
		doc:     "The service's address, up to and without /chat/completions. Default: what is known of the name.",
		example: "https://llm.acme.example/v1",
	},
	{
		key: "connections", spec: spec{kind: kindList, nonEmpty: true, elem: &spec{kind: kindObject, fields: connectionFields}},
		doc: "The accounts or keys. May be left out for services on this machine that need no key.",
	},
	{
		key: "models", spec: spec{kind: kindList, elem: &spec{kind: kindString, alternative: &spec{kind: kindObject, fields: modelFields}}},
		doc:     "The models that GET /v1/models lists and that bare model names find, each a name or a mapping. Others can still be asked for as provider/model.",
		example: "[acme-large, {id: acme-small, context: 32000}]",
	},
	{
		key: "rate_limit_scope", spec: spec{kind: kindEnum, enum: []string{"connection", "model"}},
		doc: "Whom a 429 without explanation excludes: the whole connection, or the model on it. Default: what is known of the name, else connection.",
	},
	{
		key: "headers", spec: spec{kind: kindMap, elem: &spec{kind: kindSecret}},
		doc:     "Request headers that are sent with every call, over those that would be sent otherwise.",
		example: "{x-team: search}",
	},
	{key: "proxy", spec: spec{kind: kindURL}, doc: "An HTTP or SOCKS5 proxy of this provider's own. Empty: what the environment says (HTTPS_PROXY, NO_PROXY).", example: "socks5://127.0.0.1:1080"},
	{key: "ca_file", spec: spec{kind: kindString}, doc: "A PEM file with further root certificates, from the configuration's folder.", example: "company-ca.pem"},
	{
		key: "first_token_timeout", spec: spec{kind: kindDuration, min: positive},
		doc: "How long this provider's models may think before the first content of a stream. Default: the general value, or a longer one that is known of a slow model.",
	},
	{key: "answer_timeout", spec: spec{kind: kindDuration, min: positive}, doc: "The same for answers that do not stream."},
	{
		key: "prefill", spec: spec{kind: kindEnum, enum: prefillWays()},
		doc: "How this provider's models are asked to go on from the beginning of an answer, for combos with recover. plain: it is the last message, of the assistant; prefix and partial: with that member, true, in it; continue_final_message: with that member, true, in the request; none: they are not asked. Default: what is known of the name and the model, else none.",
	},
	{key: "resilience", spec: spec{kind: kindObject, fields: resilienceFields}, doc: "This provider's own numbers, merged over the general ones key by key."},
	{
		key: "connections_strategy", spec: spec{kind: kindEnum, enum: Strategies()}, def: "round-robin",
		doc: "How one of the connections is chosen where any will do: as a combo's strategy, among connections.",
	},
}

var modelFields = []field{
	{key: "id", spec: spec{kind: kindString}, required: true, doc: "The model's name as the provider has it."},
	{key: "context", spec: spec{kind: kindInt, min: 1, max: 1e9}, doc: "Its window in tokens: requests that are too long for it go elsewhere. Default: what is known of the name.", example: "32000"},
	{key: "max_output", spec: spec{kind: kindInt, min: 1, max: 1e9}, doc: "How many tokens its answers have at most. Default: what is known of the name.", example: "8192"},
	{key: "images", spec: spec{kind: kindBool}, doc: "Whether it sees images; requests with images pass over one that does not. Default: what is known of the name, else yes."},
	{key: "tools", spec: spec{kind: kindBool}, doc: "Whether it calls tools. Default: as for images."},
	{key: "json_schema", spec: spec{kind: kindBool}, doc: "Whether it answers by a JSON schema. Default: as for images."},
	{
		key: "price", spec: spec{kind: kindObject, fields: priceFields},
		doc:     "What it costs, for the strategy cost. Default: the list price, where that is known.",
		example: "{input: 1.25, cached_input: 0.125, output: 10}",
	},
	{key: "first_token_timeout", spec: spec{kind: kindDuration, min: positive}, doc: "How long it may think before the first content of a stream.", example: "3m"},
	{key: "answer_timeout", spec: spec{kind: kindDuration, min: positive}, doc: "How long a whole answer may take.", example: "10m"},
	{key: "prefill", spec: spec{kind: kindEnum, enum: prefillWays()}, doc: "How this model is asked to go on, over the provider's own.", example: "none"},
}

var priceFields = []field{
	{key: "input", required: true, spec: spec{kind: kindNumber, max: 1e6}, doc: "US dollars for a million tokens of the prompt.", example: "1.25"},
	{key: "cached_input", spec: spec{kind: kindNumber, max: 1e6}, doc: "The same for tokens that the provider still had. Default: as input.", example: "0.125"},
	{key: "output", required: true, spec: spec{kind: kindNumber, max: 1e6}, doc: "The same for tokens of the answer.", example: "10"},
}

var connectionFields = []field{
	{key: "id", spec: spec{kind: kindString}, required: true, doc: "The connection's name. Its state belongs to it and survives restarts.", example: "main"},
	{
		key: "api_key", spec: spec{kind: kindSecret},
		doc:     "The key. ${VAR:-} leaves the connection out, with a warning, where VAR is not set.",
		example: `"${OPENAI_API_KEY}"`,
	},
	{key: "api_key_file", spec: spec{kind: kindFile}, doc: "A file that holds the key, from the configuration's folder.", example: "/run/secrets/openai"},
	{
		key: "api_key_command", spec: spec{kind: kindList, nonEmpty: true, elem: &spec{kind: kindString}, alternative: &spec{kind: kindObject, fields: commandFields}},
		doc:     "A program, with its arguments, that prints a key which does not last: the key alone, or a JSON object {\"api_key\", \"expires_at\"}. It runs at the start and again before the key ends. A run that fails leaves the key in use that there is. A mapping also says how often.",
		example: `[vault, kv, get, -field=key, secret/openai]`,
	},
	{key: "weight", spec: spec{kind: kindInt, min: 1, max: 1000}, def: "1", doc: "The connection's share among its siblings."},
	{key: "max_concurrent", spec: spec{kind: kindInt, min: 1}, doc: "How many calls may run on it at once. Further requests go to other targets, else they wait in line (`relay.queue`). Absent: any number.", example: "8"},
	{key: "base_url", spec: spec{kind: kindURL}, doc: "An address of its own, which fails independently of its siblings'.", example: "https://eu.acme.example/v1"},
}

var comboFields = append([]field{
	{
		key: "strategy", spec: spec{kind: kindEnum, enum: Strategies()}, def: "priority",
		doc: "How a target is chosen among those that are eligible: priority goes from top to bottom, round-robin takes turns by weight, weighted draws by weight, least-busy takes the one with the fewest calls in flight, fastest the one that answers soonest, headroom the one with the most left of its rate limits, cost the cheapest, random any. When it fails the next one is chosen in the same way.",
	},
	{
		key: "targets", required: true,
		spec:    spec{kind: kindList, nonEmpty: true, elem: &spec{kind: kindString, alternative: &spec{kind: kindObject, fields: targetFields}}},
		doc:     "Where requests go, each provider/model, the name of a combo, or a mapping. Combos may stand in each other four deep; each chooses by its own strategy, and the settings are those of the combo that the client named.",
		example: "[anthropic/claude-sonnet-5, {target: openai/gpt-5.2, connection: main, weight: 2}]",
	},
	{
		key: "hedge", spec: spec{kind: kindObject, fields: hedgeFields},
		doc: "Ask a second target beside one that is slow; the first content wins and the other is cancelled. Never when the key is absent.", example: "{after: 8s, budget: 5%}",
	},
	{key: "recover", spec: spec{kind: kindEnum, enum: []string{"continue"}}, doc: "Finishes streamed answers that broke off, by another attempt on the same or the next target, where the seam can be made exact. Absent: such an answer ends with an error event."},
	{
		key: "keepalive", spec: spec{kind: kindDuration}, def: "0s",
		doc:     "Show the client of a stream every so often that somebody is there while no answer has begun, for clients behind proxies that cut idle connections; at least 1s. The first sign commits the status 200: a failure after it is an error within the stream. 0s: never.",
		example: "15s",
	},
	{key: "last_resort", spec: spec{kind: kindBool}, def: "false", doc: "When every target is out and none will be back in time, send the request to the one that will be back soonest all the same, one request at a time. Never past an operator's exclusion."},
}, requestFields()...)

var hedgeFields = []field{
	{
		key: "after", spec: spec{kind: kindDuration, min: positive, enum: []string{"p95"}}, def: "p95",
		doc: "How long an attempt may show no content. p95: as long as 95 of 100 recent attempts on the target took. Whole answers, which show none before their end, always have at least that long.",
	},
	{
		key: "budget", spec: spec{kind: kindShare, min: positive}, def: "5%",
		doc: "How many attempts may be started so, as a share of the combo's requests of the last minute. One a minute always may.",
	},
}

var targetFields = []field{
	{key: "target", spec: spec{kind: kindString}, required: true, doc: "provider/model, or the name of a combo.", example: "openai/gpt-5.2"},
	{key: "connection", spec: spec{kind: kindString}, doc: "The one connection that may be used. Default: any.", example: "main"},
	{key: "weight", spec: spec{kind: kindInt, min: 1, max: 1000}, def: "1", doc: "The target's share where the strategy shares."},
}

var relayFields = []field{
	{key: "max_attempts", spec: spec{kind: kindInt, min: 1, max: 100}, def: "6", doc: "How many upstream calls a request may cause."},
	{key: "deadline", spec: spec{kind: kindDuration, min: positive}, def: "10m", doc: "Ends a request whatever it is doing."},
	{key: "patience", spec: spec{kind: kindDuration}, def: "2s", doc: "How long a request waits in total for targets that said when they will be back before it moves down a priority combo. 0s: not at all."},
	{key: "patience_for", spec: spec{kind: kindEnum, enum: []string{"hinted", "any"}}, def: "hinted", doc: "hinted is patient with targets that said when they will be back only, any with every failed one."},
	{key: "max_wait", spec: spec{kind: kindDuration}, def: "10s", doc: "How long a request waits in total when every target is out and one will be back in time. 0s: not at all."},
	{key: "connect_timeout", spec: spec{kind: kindDuration, min: positive}, def: "5s", doc: "Bounds the connection and the TLS handshake."},
	{key: "first_token_timeout", spec: spec{kind: kindDuration, min: positive}, def: "60s", doc: "Bounds the wait for the first content of a stream. Set here, it also replaces the longer values that are known of slow models."},
	{key: "answer_timeout", spec: spec{kind: kindDuration, min: positive}, def: "5m", doc: "Bounds the wait for an answer that does not stream. Set here, it also replaces the longer values that are known of slow models."},
	{key: "idle_timeout", spec: spec{kind: kindDuration, min: positive}, def: "60s", doc: "Bounds the silence within a stream."},
	{key: "stall_timeout", spec: spec{kind: kindDuration, min: positive}, def: "120s", doc: "Bounds the time in which a stream sends bytes but no content."},
	{key: "suspect_after", spec: spec{kind: kindDuration, min: positive, enum: []string{"auto"}}, def: "auto", doc: "When an attempt without content becomes suspicious. auto: from what the model's recent answers took."},
	{key: "queue", spec: spec{kind: kindObject, fields: queueFields}, doc: "Bounds the requests that wait."},
}

var queueFields = []field{
	{key: "wait", spec: spec{kind: kindDuration}, def: "30s", doc: "How long a request waits for a free place at a target. Places are limited by a connection's max_concurrent. 0s: not at all."},
	{key: "depth", spec: spec{kind: kindInt, max: 1e6}, def: "100", doc: "How many requests wait in line at one connection. Callers are served in turn; when the line is full, a caller with fewer requests in it takes the place of the newest request of the one with the most."},
	{key: "recovery", spec: spec{kind: kindInt, max: 1e6}, def: "2000", doc: "How many requests wait for one target's recovery."},
}

// requestFields are the relay keys that a combo may have of its own: all but those of the whole process.
func requestFields() []field {
	var own []field
	for _, f := range relayFields {
		if f.key != "connect_timeout" && f.key != "queue" {
			f.def, f.doc = "", "As relay."+f.key+", for requests that name this combo."
			own = append(own, f)
		}
	}
	return own
}

var ruleFields = []field{
	{key: "id", spec: spec{kind: kindString}, doc: "A name for the rule, shown wherever it fired. Default: its place, such as error_rules[0]."},
	{key: "provider", spec: orList(spec{kind: kindString}), doc: "Only answers of this provider, or of one of a list.", example: "acme"},
	{key: "dialect", spec: orList(spec{kind: kindEnum, enum: dialectNames()}), doc: "Only answers in this dialect, or in one of a list."},
	{key: "status", spec: orList(spec{kind: kindStatus}), doc: "The HTTP status, a class such as 5xx, a range such as 500-504, or a list of these.", example: "403"},
	{key: "code", spec: orList(spec{kind: kindString}), doc: "The error's code or type as its envelope has it, whatever the spelling; * at either end stands for anything. Or a list, one of which must fit."},
	{key: "text", spec: orList(spec{kind: kindString}), doc: "A part of the error's message, in any case, from the start of a word; * stands for anything. Or a list, one of which must fit.", example: `"credit pool empty"`},
	{key: "not", spec: orList(spec{kind: kindString}), doc: "A text, or a list of them, with which the rule does not fit."},
	{key: "header", spec: spec{kind: kindString}, doc: "A response header that must be there: NAME, or NAME: VALUE for a part of its value. Once a stream has content only headers that its client got count.", example: `"x-quota-state: empty"`},
	{
		key: "scope", required: true, spec: spec{kind: kindEnum, enum: []string{"request", "model", "connection", "provider", "client", "local"}},
		doc:     "How far the failure reaches: this request, the model on this connection, the connection, the provider, the client's own fault, or this machine.",
		example: "connection",
	},
	{key: "kind", spec: spec{kind: kindEnum, enum: kindNames()}, doc: "What went wrong. Default: unknown, which counts as server_error.", example: "quota_exhausted"},
	{key: "certain", spec: spec{kind: kindBool}, def: "false", doc: "Lock the model at once, since repeating cannot help."},
	{key: "quarantine", spec: spec{kind: kindBool}, def: "false", doc: "Take the connection out until a person acts."},
	{key: "cooldown", spec: spec{kind: kindDuration, min: positive}, doc: "The first exclusion, in place of the ladder's base.", example: "1h"},
	{key: "backoff", spec: spec{kind: kindBool}, def: "true", doc: "Whether the exclusion doubles with each further failure; false keeps it constant."},
}

// orList is a value or a list of such.
func orList(one spec) spec {
	elem := one
	one.alternative = &spec{kind: kindList, nonEmpty: true, elem: &elem}
	return one
}

func dialectNames() []string {
	var names []string
	for _, d := range catalog.Dialects() {
		names = append(names, string(d))
	}
	return names
}

// knownKeys are the words of the format: every key and enum word, and the names in the catalogue.
var knownKeys = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{"true": true, "false": true, "null": true, "auto": true}
	var walk func(*spec)
	walk = func(s *spec) {
		for _, w := range s.enum {
			words[w] = true
		}
		for i := range s.fields {
			words[s.fields[i].key] = true
			walk(&s.fields[i].spec)
		}
		if s.elem != nil {
			walk(s.elem)
		}
		if s.alternative != nil {
			walk(s.alternative)
		}
	}
	walk(&root)
	for _, p := range catalog.All() {
		words[p.ID] = true
	}
	return words
})
