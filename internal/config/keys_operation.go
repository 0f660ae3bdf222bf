package config

// What running a gateway safely needs: who comes in and how often, where keys come from, and who is told.

var tlsFields = []field{
	{key: "cert", spec: spec{kind: kindString}, required: true, doc: "A PEM file with the certificate, and behind it those between it and a root; from the configuration's folder.", example: "/etc/omniroute/tls.crt"},
	{key: "key", spec: spec{kind: kindFile}, required: true, doc: "A PEM file with its private key, without a password.", example: "/etc/omniroute/tls.key"},
}

var rateFields = []field{
	{key: "requests", spec: spec{kind: kindInt, min: 1, max: 1e9}, required: true, doc: "How many requests.", example: "600"},
	{key: "per", spec: spec{kind: kindDuration, min: positive}, def: "1m", doc: "In how long a time."},
}

var commandFields = []field{
	{key: "run", spec: spec{kind: kindList, nonEmpty: true, elem: &spec{kind: kindString}}, required: true, doc: "The program and its arguments. There is no shell; it runs in the configuration's folder with the gateway's environment.", example: "[gcloud, auth, print-access-token]"},
	{key: "refresh", spec: spec{kind: kindDuration, min: positive}, def: "15m", doc: "How long a key is used at most; one that says when it ends is replaced a minute before that."},
	{key: "timeout", spec: spec{kind: kindDuration, min: positive}, def: "10s", doc: "How long a run may take."},
}

var alertFields = []field{
	{key: "url", spec: spec{kind: kindSecret}, required: true, doc: "Where each message is posted as JSON, with a member text that Slack and its like show. It counts as a secret.", example: `"${ALERT_URL}"`},
	{key: "secret", spec: spec{kind: kindSecret}, doc: "Signs the messages: x-omniroute-signature has the time and an HMAC-SHA256. Default: they are not signed.", example: `"${ALERT_SECRET}"`},
	{key: "events", spec: spec{kind: kindList, nonEmpty: true, elem: &spec{kind: kindEnum, enum: AlertEvents()}}, doc: "What is told: breaker (opened, closed), quarantine (of a connection: began, ended), no_target (of a combo: began, ended), store (degraded, ok), cluster (isolated, joined). Default: all.", example: "[quarantine, no_target]"},
	{key: "name", spec: spec{kind: kindString}, doc: "Who it is, in the log. Default: the host's name.", example: "on-call"},
}

var tracingFields = []field{
	{key: "otlp", spec: spec{kind: kindURL}, required: true, doc: "The collector's address for OTLP over HTTP, up to and without /v1/traces. Empty: nothing is traced.", example: `"${OTEL_EXPORTER_OTLP_ENDPOINT:-}"`},
	{key: "headers", spec: spec{kind: kindMap, elem: &spec{kind: kindSecret}}, doc: "Request headers for the collector.", example: `{authorization: "Bearer ${COLLECTOR_TOKEN}"}`},
	{key: "sample", spec: spec{kind: kindShare}, def: "100%", doc: "The share of requests that is traced. Where a client is traced itself (traceparent), its own choice counts."},
	{key: "service", spec: spec{kind: kindString}, def: "omniroute", doc: "The service's name in the traces."},
}
