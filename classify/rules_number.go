package classify

import "omniroute/resilience"

// codeTable is a provider's own list of error numbers and codes: what they mean is known only
// with the provider's name.
type codeTable struct {
	provider []string
	rows     []codeRow
}

type codeRow struct {
	id     string
	codes  []string
	scope  resilience.Scope
	kind   resilience.Kind
	why    string
	adjust func(*Rule) // what the kind does not imply
}

// expand makes one rule of each row, with an example in the provider's envelope.
func expand(tables []codeTable) []Rule {
	var rs []Rule
	for _, t := range tables {
		for _, row := range t.rows {
			r := Rule{ID: t.provider[0] + "." + row.id, Provider: t.provider, Code: row.codes, Scope: row.scope, Kind: row.kind, Why: row.why,
				Examples: []Example{{Status: 400, Body: `{"error":{"code":"` + row.codes[0] + `","message":"see the manual"}}`}}}
			if row.adjust != nil {
				row.adjust(&r)
			}
			rs = append(rs, r)
		}
	}
	return rs
}

func refresh(r *Rule)    { r.soft, r.same = true, sameYes }
func certain(r *Rule)    { r.Certain = true }
func dayChina(r *Rule)   { r.window = "day:Asia/Shanghai" }
func dayUTC(r *Rule)     { r.window = "day:UTC" }
func sharedRate(r *Rule) { r.by = byRate }
func sharedLoad(r *Rule) { r.by = byLoad }

var codeTables = []codeTable{
	{[]string{"zhipu"}, []codeRow{
		{"auth", []string{"1000", "1001", "1002", "1004"}, connection, auth, "wrong or missing key", nil},
		{"token_expired", []string{"1003"}, connection, auth, "the signed token ran out; a new one works", refresh},
		{"account", []string{"1110", "1111", "1112", "1120", "1121"}, connection, permission, "the account is inactive, locked or irregular", nil},
		{"balance", []string{"1113"}, connection, billing, "no balance and no resource package", nil},
		{"model", []string{"1211"}, model, notFound, "no such model", nil},
		{"model_access", []string{"1220", "1221", "1222", "1311"}, model, permission, "the API or model is not in the plan", nil},
		{"method", []string{"1212", "1210", "1213", "1214", "1215"}, client, invalid, "the request's parameters are wrong", nil},
		{"too_long", []string{"1261"}, request, tooLong, "the prompt is longer than the window", nil},
		{"content", []string{"1301"}, request, content, "sensitive input or output", nil},
		{"rate", []string{"1302", "1303"}, connection, rateLimit, "concurrency or frequency of the account", nil},
		{"day", []string{"1304"}, model, quota, "the day's calls are used up", dayChina},
		{"load", []string{"1305", "1312"}, model, overloaded, "everybody wants this model: not the account's limit", nil},
		{"window", []string{"1308", "1310", "1316", "1317"}, connection, quota, "the plan's five hours, week or month; the reset time is Beijing's", nil},
		{"plan_ended", []string{"1309"}, connection, billing, "the plan has ended", nil},
		{"fair_use", []string{"1313"}, connection, permission, "restricted for unfair use until somebody asks", nil},
		{"fault", []string{"1230", "1234", "500"}, provider, serverError, "the service failed", nil},
	}},
	{[]string{"minimax"}, []codeRow{
		{"fault", []string{"1000", "1013", "1024", "1033"}, provider, serverError, "the service failed", nil},
		{"slow", []string{"1001"}, provider, timeout, "the service took too long", nil},
		{"rate", []string{"1002", "1039", "1041", "2045"}, connection, rateLimit, "requests, tokens or connections of the key", nil},
		{"auth", []string{"1004", "2049"}, connection, auth, "wrong or missing key", nil},
		{"balance", []string{"1008"}, connection, billing, "no balance", nil},
		{"content", []string{"1026", "1027"}, request, content, "sensitive input or output", nil},
		{"invalid", []string{"1042", "2013", "2037", "2039"}, client, invalid, "the request's parameters are wrong", nil},
		{"plan", []string{"2056"}, connection, quota, "the plan's window is used up", nil},
		{"plan_model", []string{"2061"}, model, permission, "the plan does not have this model", nil},
	}},
	{[]string{"baidu-qianfan"}, []codeRow{
		{"fault", []string{"1", "2", "336000"}, provider, serverError, "the service failed", nil},
		{"rate", []string{"4", "18", "336501", "336502"}, connection, rateLimit, "queries a second or minute", nil},
		{"permission", []string{"6", "15"}, connection, permission, "the application may not call this", nil},
		{"auth", []string{"13", "14", "100"}, connection, auth, "wrong key or signature", nil},
		{"day", []string{"17"}, connection, quota, "the day's calls are used up", dayChina},
		{"total", []string{"19"}, connection, billing, "all calls that were bought are used up", nil},
		{"token_expired", []string{"110", "111"}, connection, auth, "the access token ran out; a new one works", refresh},
		{"invalid", []string{"3", "336001", "336002", "336003", "336006"}, client, invalid, "the request's parameters are wrong", nil},
		{"too_long", []string{"336007", "336103", "336104"}, request, tooLong, "the prompt is longer than the window", nil},
		{"load", []string{"336100"}, model, overloaded, "the model is busy", nil},
		{"own_rate", []string{"rpm_rate_limit_exceeded", "tpm_rate_limit_exceeded"}, connection, rateLimit, "the key's requests or tokens a minute", nil},
	}},
	{[]string{"cloudflare-workers-ai"}, []codeRow{
		{"day", []string{"4006", "3036"}, connection, quota, "the account's free allowance of the day", dayUTC},
		{"load", []string{"3040"}, model, overloaded, "no capacity for the model", nil},
		{"model", []string{"5007"}, model, notFound, "no such model", nil},
		{"model_access", []string{"5016", "5018", "3041"}, model, permission, "the model's terms were not agreed to, or it is private", nil},
		{"auth", []string{"10000", "10001", "9109"}, connection, auth, "wrong key", nil},
		{"slow", []string{"3007", "3046"}, model, timeout, "the model took too long", nil},
		{"invalid", []string{"5004", "3003", "5006"}, client, invalid, "the request's parameters are wrong", nil},
		{"too_large", []string{"3006"}, request, tooLarge, "the request is too large", nil},
	}},
	{[]string{"volcengine-ark", "sensenova"}, []codeRow{
		{"set_limit", []string{"SetLimitExceeded"}, model, quota, "the owner's own cap pauses the model until it is raised", certain},
		{"model_rate", []string{"ModelAccount*RateLimitExceeded", "Endpoint*RateLimitExceeded", "ModelAccountIpm*"}, model, rateLimit, "this model's requests or tokens a minute on this account", nil},
		{"account_rate", []string{"AccountRateLimitExceeded", "RequestBurstTooFast"}, connection, rateLimit, "the account's requests", nil},
		{"load", []string{"ServerOverloaded"}, provider, overloaded, "the service is overloaded", nil},
		{"not_open", []string{"ModelNotOpen", "OperationDenied.ServiceNotOpen"}, model, permission, "the model was not activated", nil},
		{"overdue", []string{"AccountOverdueError", "OperationDenied.ServiceOverdue"}, connection, billing, "the bill is overdue", nil},
		{"quota", []string{"QuotaExceeded"}, model, quota, "the free allowance for the model is used up", nil},
		{"content", []string{"*SensitiveContentDetected*"}, request, content, "sensitive input or output", nil},
	}},
	{[]string{"mistral"}, []codeRow{
		{"rate", []string{"1300"}, connection, rateLimit, "requests of the workspace", sharedRate},
		{"capacity", []string{"3505"}, model, overloaded, "the tier's capacity for the model", nil},
		{"model", []string{"1500"}, model, notFound, "no such model", nil},
		{"too_long", []string{"3051"}, request, tooLong, "the prompt is longer than the window", nil},
	}},
	{[]string{"bedrock", "kiro"}, []codeRow{
		{"not_ready", []string{"ModelNotReady"}, model, overloaded, "the model is cold", nil},
		{"throttled", []string{"Throttling", "TooManyRequests"}, model, rateLimit, "requests or tokens for now", sharedRate},
		{"service_quota", []string{"ServiceQuotaExceeded"}, connection, quota, "a quota that only a request to support raises", func(r *Rule) { r.Quarantine = true }},
		{"unavailable", []string{"ServiceUnavailable"}, provider, serverError, "the service cannot take it now", nil},
		{"internal", []string{"InternalServer", "InternalFailure"}, provider, serverError, "the service failed", nil},
		{"slow", []string{"ModelTimeout"}, model, timeout, "the model took too long", nil},
		{"model_failed", []string{"ModelError", "ModelStreamError", "ModelStreamErrorException"}, model, serverError, "the model failed", nil},
		{"token_expired", []string{"ExpiredToken"}, connection, auth, "session credentials ran out; new ones work", refresh},
		{"auth", []string{"UnrecognizedClient", "InvalidClientTokenId", "IncompleteSignature", "MissingAuthenticationToken"}, connection, auth, "wrong keys", nil},
		{"skew", []string{"InvalidSignature", "SignatureDoesNotMatch"}, connection, auth, "a signature that does not fit: mostly this machine's clock", refresh},
		{"denied", []string{"AccessDenied"}, connection, permission, "the role does not allow the call", nil},
	}},
	{[]string{"dashscope"}, []codeRow{
		{"arrears", []string{"Arrearage"}, connection, billing, "the bill is overdue", nil},
		{"free_tier", []string{"AllocationQuota.FreeTierOnly"}, model, quota, "the model's free allowance is used up and paying is switched off", certain},
		{"not_bought", []string{"AccessDenied.Unpurchased", "Model.AccessDenied"}, model, permission, "the model is not activated for the account or workspace", nil},
		{"workspace", []string{"Workspace.AccessDenied"}, connection, permission, "the key's workspace does not allow the call", nil},
		{"content", []string{"DataInspectionFailed", "data_inspection_failed"}, request, content, "inappropriate input or output", nil},
		{"serving", []string{"ModelServingError", "ModelUnavailable"}, model, overloaded, "the model's capacity", nil},
		{"burst", []string{"limit_burst_rate", "Throttling.BurstRate"}, connection, rateLimit, "requests rise too fast", nil},
	}},
	{[]string{"openai-codex"}, []codeRow{
		{"window", []string{"usage_limit_reached"}, connection, quota, "the plan's five hours or week", nil},
		{"workspace", []string{"deactivated_workspace"}, connection, billing, "the workspace is switched off", nil},
		{"plan", []string{"usage_not_included"}, connection, permission, "the plan does not have this product", nil},
	}},
	{[]string{"cerebras"}, []codeRow{
		{"queue", []string{"queue_exceeded"}, model, overloaded, "the service's queue, not the account's", nil},
	}},
	{[]string{"groq"}, []codeRow{
		{"flex", []string{"capacity_exceeded"}, model, overloaded, "the flex tier is full", sharedLoad},
	}},
	{[]string{"xai-grok-build", "xai"}, []codeRow{
		{"free", []string{"subscription:free-usage-exhausted"}, model, quota, "free usage of a rolling day", nil},
	}},
	{[]string{"github-models"}, []codeRow{
		{"day", []string{"UserByModelByDay"}, model, quota, "the day's requests of the model", nil},
	}},
	{[]string{"fireworks"}, []codeRow{
		{"suspended", []string{"PRECONDITION_FAILED"}, connection, billing, "the account is suspended for unpaid bills or its spending cap", nil},
	}},
	{[]string{"azure-openai"}, []codeRow{
		{"role", []string{"PermissionDenied"}, connection, permission, "the role assignment is missing", nil},
		{"key", []string{"401"}, connection, auth, "wrong key or endpoint", nil},
	}},
}
