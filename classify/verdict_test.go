package classify

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"omniroute/resilience"
)

// verdictCase is an answer and what must be made of it: "scope/kind", then flags of what else
// must hold: "+person" needs a person, "-person" must not, "wait=MS".
type verdictCase struct {
	provider string
	status   int
	header   string
	body     string
	want     string
}

func (c verdictCase) run(t *testing.T, cl *Classifier, in Input) {
	t.Helper()
	in.Provider, in.Status, in.Body = c.provider, c.status, []byte(c.body)
	if in.Now.IsZero() {
		in.Now = exampleNow
	}
	in.Header = http.Header{}
	for line := range strings.SplitSeq(c.header, "\n") {
		if k, v, ok := strings.Cut(line, ": "); ok {
			in.Header.Add(k, v)
		}
	}
	v := cl.Classify(in)
	r := NewResult("", v, in.Now)
	fields := strings.Fields(c.want)
	ok := false
	for alt := range strings.SplitSeq(fields[0], "|") {
		ok = ok || alt == r.Scope+"/"+r.Kind
	}
	for _, f := range fields[1:] {
		switch {
		case f == "+person":
			ok = ok && r.Quarantine
		case f == "-person":
			ok = ok && !r.Quarantine
		case f == "+same":
			ok = ok && r.RetrySame
		case f == "-same":
			ok = ok && !r.RetrySame
		case f == "-else":
			ok = ok && !r.RetryElse
		case f == "wait=none":
			ok = ok && r.RetryAfterMs == nil
		case strings.HasPrefix(f, "wait="):
			ok = ok && r.RetryAfterMs != nil && fmt.Sprint(*r.RetryAfterMs) == f[5:]
		default:
			t.Fatalf("unknown expectation %q", f)
		}
	}
	if !ok {
		wait := "none"
		if r.RetryAfterMs != nil {
			wait = fmt.Sprint(*r.RetryAfterMs)
		}
		t.Errorf("%s %d %s\n\twant %s\n\tgot  %s/%s person=%v same=%v wait=%s by %s: %s", c.provider, c.status, c.body, c.want, r.Scope, r.Kind, r.Quarantine, r.RetrySame, wait, v.Rule, v.Evidence)
	}
	checkVerdict(t, c.body, in, v)
}

// TestUnknownProvidersAreRead has answers of upstreams that no rule names: what the envelopes,
// codes and words of the trade have in common must be enough.
func TestUnknownProvidersAreRead(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	for _, c := range []verdictCase{
		{"acme", 429, "", `{"error":{"message":"Requests per minute exceeded for this key, retry in 3 seconds"}}`, "connection/rate_limit wait=3000 +same"},
		{"acme", 429, "", `{"error":{"message":"Model acme-7b is at its limit of 20 requests per minute"}}`, "model/rate_limit"},
		{"acme", 429, "retry-after: 7200", `{"error":{"message":"Slow down"}}`, "connection/rate_limit wait=7200000 -same"},
		{"acme", 429, "retry-after: 601", ``, "connection/rate_limit wait=601000 -same"},
		{"acme", 429, "retry-after: 601", `{"error":{"message":"Too many requests for your quota"}}`, "connection/quota_exhausted wait=601000 -same"},
		{"acme", 429, "retry-after: 601", `{"error":{"code":"quota_exceeded","message":"Slow down"}}`, "connection/quota_exhausted wait=601000"},
		{"acme", 429, "x-ratelimit-remaining-requests-day: 0\nx-ratelimit-reset-requests-day: 43200", `{"error":{"message":"Slow down"}}`, "connection/quota_exhausted wait=43200000"},
		{"acme", 429, "", `{"error":{"message":"Your weekly quota is used up, it resets in 3 days"}}`, "connection/quota_exhausted wait=259200000"},
		{"acme", 403, "", `{"error":{"code":"model_access_denied","message":"Not in your tier"}}`, "model/permission"},
		{"acme", 402, "", `{"message":"Your prepaid balance is exhausted"}`, "connection/billing +person"},
		{"acme", 400, "", `{"error":{"message":"You do not have enough credits for this call","type":"invalid_request_error"}}`, "connection/billing +person"},
		{"acme", 401, "", `{"error":"invalid_token","error_description":"The access token expired"}`, "connection/auth -person +same"},
		{"acme", 401, "", `{"error":"invalid_token","error_description":"The token is malformed"}`, "connection/auth +person"},
		{"acme", 401, "", `{"error":{"message":"Your API key was disabled by an administrator"}}`, "connection/auth +person"},
		{"acme", 401, "", `{"success":false,"message":"Unauthorized"}`, "connection/auth -person"},
		{"acme", 403, "", `{"error":{"message":"Forbidden"}}`, "connection/permission -person"},
		{"acme", 404, "", `{"error":{"message":"unknown model 'acme-9'"}}`, "model/model_not_found"},
		{"acme", 400, "", `{"error":{"message":"The model acme-1 has been retired, use acme-2","code":"bad_request"}}`, "model/model_not_found"},
		{"acme", 400, "", `{"error":{"message":"model parameter is not valid: acme-x is not a valid model"}}`, "model/model_not_found"},
		{"acme", 404, "", `{"error":{"message":"No batch found with id 'batch_1'"}}`, "client/invalid_request -else"},
		{"acme", 404, "", `{"detail":"Not Found"}`, "connection/unknown"},
		{"acme", 503, "", `{"error":{"message":"All replicas of acme-7b are busy, the queue is full"}}`, "provider/model_overloaded|model/model_overloaded +same"},
		{"acme", 500, "", `{"error":{"message":"CUDA out of memory"}}`, "model/server_error"},
		{"acme", 502, "content-type: text/html", `<html><head><title>Bad gateway</title></head></html>`, "provider/server_error"},
		{"acme", 503, "content-type: text/html", `<html><head><title>Attention Required! | Shield</title></head></html>`, "provider/network -same"},
		{"acme", 520, "", `error code: 520`, "provider/server_error"},
		{"acme", 413, "", ``, "request/too_large"},
		{"acme", 400, "", `{"error":{"message":"Your conversation of 9000 tokens does not fit: the maximum context length is 8192."}}`, "request/context_length"},
		{"acme", 500, "", `{"error":"prompt exceeds the context window"}`, "request/context_length"},
		{"acme", 400, "", `{"error":{"message":"Blocked by our content policy","code":"refused"}}`, "request/content_policy"},
		{"acme", 400, "", `{"error":{"message":"tool_choice is not supported for this model"}}`, "request/invalid_request"},
		{"acme", 400, "", `{"errors":[{"code":"E17","message":"quota exceeded for project, resets tomorrow"}]}`, "connection/quota_exhausted"},
		{"acme", 429, "x-ratelimit-reset-after: 4", `{"code":"TOO_MANY_REQUESTS","msg":"slow"}`, "connection/rate_limit wait=4000"},
		{"acme", 200, "", `{"code":40003,"msg":"rate limited, wait 2s","data":null}`, "connection/rate_limit wait=2000"},
		{"acme", 200, "", `{"status":"error","error":{"type":"invalid_api_key","message":"bad key"}}`, "connection/auth +person"},
		{"acme", 200, "content-type: text/event-stream", "event: error\ndata: {\"code\":\"unknown_x\",\"message\":\"oh no\"}\n\n", "provider/server_error"},
		{"acme", 200, "content-type: text/event-stream", ":HTTP_STATUS/429\nevent: error\ndata: {\"code\":\"Throttling\",\"message\":\"Requests throttled\"}\n\n", "connection/rate_limit"},
		{"acme", 200, "content-type: text/event-stream", "event: error\ndata: upstream overloaded\n\n", "provider/model_overloaded"},
		{"acme", 451, "", ``, "provider/permission"},
		{"acme", 403, "", `{"error":{"message":"This service is not available in your region"}}`, "provider/permission"},
		{"acme", 403, "", `{"message":"Your account has been suspended due to a policy breach"}`, "connection/permission +person"},
		{"acme", 429, "", `{"fault":{"faultstring":"Rate limit quota violation","detail":{"errorcode":"policies.ratelimit.QuotaViolation"}}}`, "connection/rate_limit"},
		{"acme", 403, "content-type: application/xml", `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>User is not authorized to perform this</Message></Error>`, "connection/permission"},
		{"acme", 503, "", `Service Unavailable`, "provider/server_error"},
		{"acme", 503, "retry-after: 2", `{"error":{"message":"Service Unavailable"}}`, "provider/server_error wait=2000 +same"},
		{"acme", 504, "", `stream timeout`, "provider/timeout"},
		{"acme", 429, "", `{"error":{"message":"服务繁忙，请稍后再试"}}`, "provider/model_overloaded"},
		{"acme", 429, "", `{"error":{"message":"请求过于频繁，请在 30 秒后重试"}}`, "connection/rate_limit wait=30000"},
		{"acme", 402, "", `{"error":{"message":"账户余额不足，请充值"}}`, "connection/billing +person"},
		{"acme", 401, "", `{"error":{"message":"无效的API密钥"}}`, "connection/auth +person"},
		{"acme", 404, "", `{"error":{"message":"模型不存在: acme-9"}}`, "model/model_not_found"},
		{"acme", 429, "", `{"error":{"message":"今日配额已用完"}}`, "connection/quota_exhausted"},
		{"acme", 400, "", `{"error":{"message":"Error code: 429 - {'error': {'message': 'Rate limit reached', 'code': 'rate_limit_exceeded'}}"}}`, "connection/rate_limit|model/rate_limit"},
		{"acme", 500, "", `{"error":{"message":"litellm.AuthenticationError: AnthropicException - {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}"}}`, "model/server_error -person"},
		{"acme", 408, "", `{"error":{"message":"Request timeout"}}`, "provider/timeout"},
		{"acme", 409, "", `{"error":{"message":"Conflict"}}`, "request/unknown"},
		{"acme", 403, "", `{"error":{"message":"This key is not allowed to access model acme-9"}}`, "model/permission"},
		{"acme", 401, "", `{"error":{"message":"No such project: p-1"}}`, "connection/auth +person"},
		{"acme", 404, "", `{"error":{"message":"acme-9 is not a chat model","param":"model"}}`, "request/invalid_request"},
		{"acme", 404, "", `{"error":{"message":"Fine-tuning job ft-1 of model acme-9 was not found"}}`, "client/invalid_request -person"},
		{"acme", 403, "", `{"message":"The call volume quota is gone and will be replenished in 02:10:03."}`, "connection/quota_exhausted wait=7803000"},
		{"acme", 403, "", `{"error":{"message":"Key limit exceeded (total)"}}`, "connection/billing +person"},
		{"acme", 403, "", `{"error":{"message":"Key limit exceeded (daily)"}}`, "connection/quota_exhausted -person"},
		{"acme", 403, "", `{"error":{"message":"Go and check your network settings"}}`, "provider/network -person"},
		{"acme", 400, "", `{"error":{"message":"The organization was restricted"}}`, "connection/permission +person"},
		{"acme", 403, "", `{"error":{"message":"The content violates our usage guidelines"}}`, "request/content_policy"},
		{"acme", 400, "", `{"error":{"message":"The maximum prompt length here is 900"}}`, "request/context_length"},
		{"acme", 424, "", `{"error":"generation failed: CUDA error"}`, "model/server_error"},
		{"acme", 503, "", `{"error":{"message":"No replicas are up for it"}}`, "provider/model_overloaded"},
		{"acme", 403, "", `{"error":{"message":"该令牌无权访问模型 acme-9"}}`, "model/permission"},
		{"acme", 401, "", `{"error":{"message":"该令牌额度已用尽"}}`, "connection/billing +person"},
		{"acme", 429, "", `{"detail":"Add a payment method; until then you have reduced rate limits of 3 RPM."}`, "connection/rate_limit -person"},
		{"acme", 429, "", `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"Rate limit hit\"}}"}}}`, "model/rate_limit"},
		{"acme", 404, "", `{"error":{"message":"There is no model of the name acme-9"}}`, "model/model_not_found"},
		{"acme", 429, "", `{"error":{"message":"The allowance of this billing cycle is used up"}}`, "connection/quota_exhausted"},
		{"acme", 418, "", `{"error":{"message":"short and stout"}}`, "request/unknown"},
		{"acme", 415, "", `{"detail":"text/plain is no media type of ours"}`, "client/invalid_request"},
		{"acme", 421, "", ``, "provider/network"},
		{"acme", 400, "", `{"error":{"message":"Content Exists Risk","type":"invalid_request_error","code":"invalid_request_error"}}`, "request/content_policy"},
		{"acme", 400, "", `{"error":{"message":"Guardrail was triggered: 'Prompt injection detected'"}}`, "request/content_policy"},
		{"acme", 400, "", `{"error":{"message":"The model ` + "`m-1`" + ` requires terms acceptance.","type":"invalid_request_error","code":"model_terms_required"}}`, "model/permission"},
		{"acme", 403, "", `{"code":30003,"message":"Model disabled.","data":null}`, "model/permission"},
		{"acme", 403, "", `{"error":{"message":"您无权访问该模型 acme-9"}}`, "model/permission"},
		{"acme", 403, "", `{"error":{"message":"Your subscription does not include access to this model."}}`, "model/permission"},
		{"acme", 403, "", `{"error":{"message":"Model acme-9 is only available on the Pro plan"}}`, "model/permission"},
		{"acme", 404, "", `{"error":{"message":"Could not find model 'foo'. Did you mean 'bar'?"}}`, "model/model_not_found"},
		{"acme", 404, "", `{"error":{"message":"The requested model 'foo' is unavailable."}}`, "model/model_not_found"},
		{"acme", 404, "", `{"error":{"message":"Engine not found"}}`, "model/model_not_found"},
		{"acme", 410, "", `{"error":{"message":"acme-8 was discontinued on 2026-01-01"}}`, "model/model_not_found"},
		{"acme", 429, "", `{"error":{"message":"Prepaid balance exhausted; recharge to continue."}}`, "connection/billing +person"},
		{"acme", 429, "", `{"error":{"message":"Crossed TPM / RPM / Max Parallel Request Limit. Hit limit for api_key: x. Current limit: 1, rpm: 1"}}`, "connection/rate_limit"},
		{"acme", 400, "", `{"error":{"message":"The total number of tokens in the instruction and prompt must be below the model limit of 32k"}}`, "request/context_length"},
		{"acme", 400, "", `{"error":{"message":"输入tokens数超出限制，最大支持 131072"}}`, "request/context_length"},
		{"acme", 400, "", `{"error":{"message":"プロンプトが長すぎます。最大 8192 トークンです"}}`, "request/context_length"},
		{"acme", 400, "", `{"error":{"message":"Your organization has reached its spend limit.","type":"invalid_request_error"}}`, "connection/billing +person"},
		{"acme", 400, "", `{"error":{"message":"Insufficient balance"}}`, "connection/billing +person"},
		{"acme", 400, "", `{"error":{"message":"API key not valid. Please pass a valid API key."}}`, "connection/auth +person"},
		{"acme", 400, "", `{"error":{"message":"Rate limit exceeded, try again in 3s"}}`, "connection/rate_limit wait=3000"},
		{"acme", 404, "", `{"error":{"message":"Vector store vs_abc not found."}}`, "client/invalid_request"},
		{"acme", 400, "", `{"error":{"message":"This version of the model came to the end of its life, take another","code":"bad_request"}}`, "model/model_not_found"},
		{"acme", 400, "", `{"error":{"code":"unavailable_model","message":"acme-9 is off"}}`, "model/model_not_found"},
		{"acme", 403, "", `{"error":"The model acme-400b is too large to be loaded here"}`, "model/model_not_found"},
		{"acme", 404, "", `{"error":{"message":"模型 acme-9 不存在"}}`, "model/model_not_found"},
		{"acme", 403, "", `{"error":{"code":"no_access","message":"No access to model: acme-9"}}`, "model/permission"},
		{"acme", 403, "", `{"error":{"message":"Refused by the firewall rules of the virtual network."}}`, "connection/permission +person"},
		{"acme", 401, "", `{"error":{"message":"The inference permission is required here"}}`, "connection/permission +person"},
		{"acme", 403, "", `{"error":"This token has no sufficient permissions for that"}`, "connection/permission +person"},
		{"acme", 403, "", `{"error":{"type":"permission_denied_error","message":"Not open to you"}}`, "connection/permission +person"},
		{"acme", 401, "", `{"error":{"message":"Bad credentials"}}`, "connection/auth +person"},
		{"acme", 401, "", `{"code":"unauthenticated:nothing","error":"No credentials came along."}`, "connection/auth +person"},
		{"acme", 401, "", `{"error":{"message":"APIキーが正しくありません"}}`, "connection/auth +person"},
		{"acme", 412, "", `{"error":"Fetching image failed: 403"}`, "request/invalid_request"},
		{"acme", 404, "", `{"error":{"message":"No allowed providers serve it"}}`, "request/invalid_request"},
		{"acme", 451, "", `{"message":"The picture may contain sensitive matter"}`, "request/content_policy"},
		{"acme", 400, "", `{"error":{"message":"输入长度超出了上下文限制"}}`, "request/context_length"},
		{"acme", 500, "", `{"error":{"code":500,"message":"tools param requires --some-flag","type":"server_error"}}`, "request/invalid_request"},
		{"acme", 400, "", `{"error":"Model unloaded."}`, "model/server_error -person +same"},
		{"acme", 511, "content-type: text/html", `<html><title>Log in to the network</title></html>`, "provider/network -same"},
		{"acme", 504, "", `{"message":"Endpoint request timed out"}`, "provider/timeout"},
		{"acme", 429, "x-retry-after: 17", `{"error":{"message":"Too many requests"}}`, "connection/rate_limit wait=17000"},
		{"acme", 429, "", `{"error":{"message":"Rate limit exceeded. Limit resets at: 2026-01-05 10:01:00 UTC"}}`, "connection/rate_limit wait=60000"},
		{"acme", 429, "", `{"error":{"message":"The daily quota is gone. It resets at midnight UTC."}}`, "connection/quota_exhausted wait=50400000"},
		{"acme", 200, "", `{"id":"x","choices":null}`, "model/malformed_response"},
		{"acme", 200, "", `{"error":{"message":"Enough","code":"429"}}`, "connection/rate_limit"},
		{"acme", 200, "", `{"code":401,"msg":"no"}`, "connection/auth -person"},
		{"acme", 200, "", `{"error":{"message":"no","code":400}}`, "provider/server_error"},
		{"acme", 405, "", `{"detail":"Method Not Allowed"}`, "connection/unknown"},
		{"acme", 429, "", `{"error":{"message":"Weekly limit. Take another model","code":"user_weekly_rate_limited"}}`, "connection/quota_exhausted"},
		{"acme", 429, "", `{"error":{"message":"Wait 2 minutes before you ask a model again","code":"user_global_rate_limited"}}`, "connection/rate_limit wait=120000"},
		{"acme", 429, "", `{"error":{"code":"AccountQuotaExceeded","message":"The 5-hour quota of the model plan is gone. It will reset at 2026-01-05 20:00:00 +0800 CST."}}`, "connection/quota_exhausted wait=7200000"},
		{"acme", 401, "", `{"error_code":"X.81005","error_msg":"The free quota has been used up."}`, "connection/quota_exhausted -person"},
		{"acme", 403, "", `{"errors":[{"code":"token_quota_reached","message":"Over what the plan has"}]}`, "connection/quota_exhausted -person"},
		{"acme", 400, "", `{"error":{"code":"model_max_prompt_tokens_exceeded","message":"93854 is over 90000"}}`, "request/context_length"},
		{"acme", 400, "", `{"error":{"code":400,"message":"The input token count is 1200000 but the model only supports up to 1048576."}}`, "request/context_length"},
		{"acme", 200, "", `{"code":907,"message":"token数量超过上限"}`, "request/context_length"},
		{"acme", 200, "", `{"Response":{"Error":{"Code":"AuthFailure.SignatureFailure","Message":"Check the signature"},"RequestId":"r"}}`, "connection/auth +person"},
		{"acme", 200, "", `{"Response":{"Error":{"Code":"RequestLimitExceeded","Message":"7 in a second, 5 allowed"},"RequestId":"r"}}`, "connection/rate_limit"},
		{"acme", 451, "", `{"error":{"type":"censorship_blocked","message":"Input refused"}}`, "request/content_policy"},
		{"acme", 400, "", `{"error":{"code":"sensitive_words_detected","message":"no"}}`, "request/content_policy"},
		{"acme", 403, "", `{"detail":{"error":"User not authenticated"}}`, "connection/auth +person"},
		{"acme", 429, "", `{"detail":"We are at maximum capacity now"}`, "provider/model_overloaded"},
		{"acme", 402, "", `{"detail":"Over quota and the account balance is $0.0"}`, "connection/billing +person"},
		{"acme", 400, "", `{"error":{"message":"You're out of extra usage."}}`, "connection/quota_exhausted"},
		{"acme", 400, "", `{"error":{"message":"This credential is only authorized for use with one client."}}`, "connection/permission +person"},
		{"acme", 200, "content-type: text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"network_error\"}]}\n\ndata: [DONE]\n\n", "model/server_error"},
		{"acme", 200, "content-type: text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"},\"finish_reason\":\"insufficient_system_resource\"}]}\n\n", "model/server_error"},
		{"acme", 401, "", `{"error":{"code":"invalid_issuer","message":"Who made that token?"}}`, "connection/auth +person"},
		{"acme", 403, "", `{"error":{"message":"Key based authentication is disabled for this resource."}}`, "connection/permission +person"},
		{"acme", 400, "", `{"message":"Not allowed from unsupported countries"}`, "provider/permission"},
		{"acme", 400, "", `{"error":{"message":"The request payload size exceeds what we take: 20 MB."}}`, "request/too_large"},
		{"acme", 500, "", `{"error":"Model loading failed: OutOfMemory"}`, "model/server_error"},
		{"kiro", 402, "", `{"message":"That was all","reason":"MONTHLY_REQUEST_COUNT"}`, "connection/quota_exhausted -person"},
		{"bedrock", 403, "x-amzn-errortype: AccessDeniedException", `{"Message":"Bearer Token has expired"}`, "connection/auth -person +same"},
		{"acme", 400, "", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"A turn is empty\"}}"}}}`, "request/invalid_request -person"},
		{"acme", 401, "", `{"error":{"message":"Provider returned error","code":401,"metadata":{"raw":"{\"error\":{\"message\":\"Invalid API key\"}}"}}}`, "model/server_error -person"},
		{"acme", 400, "", `{"error":{"message":"ContentPolicyViolationError: what came back was filtered"}}`, "request/content_policy"},
		{"acme", 400, "", `{"error":{"message":"Input token length too long"}}`, "request/context_length"},
		{"acme", 403, "", `{"error":{"message":"您的IP不在白名单中"}}`, "connection/permission +person"},
		{"acme", 403, "", `{"error":{"message":"This project has been archived."}}`, "connection/permission +person"},
		{"acme", 403, "", `{"error":{"message":"Sorry, your account is frozen"}}`, "connection/permission +person"},
		{"acme", 403, "", `{"error":{"message":"A policy forbids to use a disallowed generative model"}}`, "model/permission"},
		{"acme", 403, "", `{"error":{"message":"A valid credit card on file is wanted"}}`, "connection/billing +person"},
		{"acme", 429, "", `{"error":{"message":"Rate limit exceeded. Add a credit card to raise it."}}`, "connection/rate_limit -person"},
		{"acme", 200, "", `{"Response":{"Error":{"Code":"AuthFailure.SignatureExpire","Message":"Signature expired. The clocks differ."},"RequestId":"r"}}`, "connection/auth -person +same"},
		{"acme", 429, "", `{"error":{"message":"Rate limited, next request allowed at 2026-01-05T10:00:30Z"}}`, "connection/rate_limit wait=30000"},
		{"minimax", 200, "", `{"base_resp":{"status_code":2061,"status_msg":"not in the plan"}}`, "model/permission"},
		{"dashscope", 403, "", `{"code":"Workspace.AccessDenied","message":"no"}`, "connection/permission +person"},
		{"one-api", 401, "", `{"error":{"message":"该令牌已过期"}}`, "connection/auth +person -same"},
		{"acme", 400, "", `{"error":{"message":"Invalid 'temperature': must be between 0 and 2","param":"temperature","type":"invalid_request_error"}}`, "client/invalid_request -else"},
	} {
		c.run(t, cl, Input{Dialect: "openai"})
	}
}

// TestKnownQuirks has one answer for each trap that a provider is known for.
func TestKnownQuirks(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	for _, c := range []verdictCase{
		// The same sentence is an empty wallet here and a throttle there.
		{"openai", 429, "", `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota"}}`, "connection/billing +person"},
		{"gemini", 429, "", `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}`, "model/rate_limit -person"},
		{"dashscope", 429, "", `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, "model/rate_limit -person"},
		// A short structured delay outranks a word; a per-day quota id outranks the delay.
		{"gemini", 429, "", `{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x/google.rpc.RetryInfo","retryDelay":"38s"}]}}`, "model/rate_limit|connection/rate_limit wait=38000 +same"},
		{"gemini", 429, "", `{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"50"}]},{"@type":"x/google.rpc.RetryInfo","retryDelay":"26s"}]}}`, "model/quota_exhausted -same"},
		{"gemini", 429, "", `{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x/google.rpc.QuotaFailure","violations":[{"quotaId":"PerMinute","quotaValue":"0"}]},{"@type":"x/google.rpc.RetryInfo","retryDelay":"26s"}]}}`, "model/quota_exhausted +person wait=none"},
		{"xai", 429, "", `{"code":"resource-exhausted","error":"Too many requests for team t and model grok-9. Your team's rate limit is - Requests per Minute (actual/limit): 0/0."}`, "model/permission +person"},
		{"bedrock", 403, "x-amzn-errortype: InvalidSignatureException", `{"message":"What was calculated does not match the signature you provided."}`, "connection/auth +person"},
		{"bedrock", 403, "x-amzn-errortype: InvalidSignatureException", `{"message":"Signature expired: 1 is now earlier than 2"}`, "connection/auth -person +same"},
		{"litellm", 408, "", `{"error":{"message":"litellm.Timeout: Request timed out."}}`, "model/timeout"},
		{"vercel", 504, "content-type: text/plain", "An error with your deployment\n\nFUNCTION_INVOCATION_TIMEOUT\n", "connection/timeout"},
		{"minimax", 200, "", `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, "connection/billing +person"},
		{"zhipu", 429, "", `{"error":{"code":"1310","message":"Limit reached. It will reset at 2026-01-06 18:00:00"}}`, "connection/quota_exhausted wait=86400000"},
		{"zhipu", 429, "", `{"type":"error","error":{"type":"rate_limit_error","message":"[1302][Rate limit reached for requests]"}}`, "connection/rate_limit -person"},
		{"anthropic", 529, "", ``, "provider/model_overloaded"},
		{"anthropic", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, "connection/billing +person"},
		{"openai", 503, "", `{"error":{"code":"slow_down","message":"Slow down"}}`, "connection/rate_limit"},
		{"openai", 429, "", `{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 6000, Requested 14810","code":"rate_limit_exceeded","type":"tokens"}}`, "request/too_large"},
		{"cohere", 498, "", `{"message":"blocked output: it resembles our blocklist"}`, "request/content_policy"},
		{"groq", 498, "", `{"error":{"message":"Flex tier capacity exceeded","code":"capacity_exceeded"}}`, "model/model_overloaded"},
		{"openrouter", 402, "", `{"error":{"code":402,"message":"You requested up to 900 tokens, but can only afford 120."}}`, "request/billing -person"},
		{"openrouter", 200, "", `{"choices":[],"error":{"code":502,"message":"Worker local total request limit reached (33/32)"}}`, "model/model_overloaded"},
		{"ollama", 500, "", `{"error":"the model runner has stopped"}`, "model/server_error"},
		{"fireworks", 412, "", `{"error":{"code":"PRECONDITION_FAILED","message":"Account suspended for an unpaid invoice"}}`, "connection/billing +person"},
		{"openai-codex", 200, "content-type: text/event-stream", "data: {\"type\":\"error\",\"status_code\":429,\"error\":{\"type\":\"usage_limit_reached\"},\"headers\":{\"X-Codex-Primary-Used-Percent\":\"100\",\"X-Codex-Primary-Reset-After-Seconds\":\"13873\"}}\n\n", "connection/quota_exhausted wait=13873000"},
		{"bedrock", 400, "x-amzn-errortype: ValidationException", `{"message":"Input is too long for requested model."}`, "request/context_length"},
		{"bedrock", 503, "x-amzn-errortype: ServiceUnavailableException", `{"message":"Too many connections, please wait."}`, "provider/server_error"},
		{"nvidia-nim", 404, "", `{"status":404,"title":"Not Found","detail":"Function 'f-1': Not found for account 'a-1'"}`, "model/model_not_found"},
		{"github-copilot", 402, "", `{"error":{"message":"You have exceeded your premium request allowance.","code":"quota_exceeded"}}`, "connection/quota_exhausted"},
		{"azure-openai", 403, "", `{"statusCode":403,"message":"Out of call volume quota. Quota will be replenished in 2.04:12:30."}`, "connection/quota_exhausted wait=187950000"},
	} {
		c.run(t, cl, Input{})
	}
}

// TestUnexplainedRateLimitFollowsTheConfiguration is what rate_limit_scope is for.
func TestUnexplainedRateLimitFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	for _, tt := range []struct {
		provider string
		set      resilience.Scope
		body     string
		want     resilience.Scope
	}{
		{"acme", resilience.ScopeNone, ``, connection},
		{"acme", model, ``, model},
		{"groq", resilience.ScopeNone, ``, model},
		{"groq", connection, ``, connection},
		{"acme", connection, `{"error":{"message":"Too many requests for model x"}}`, model},
		{"openai", resilience.ScopeNone, ``, connection},
		{"openai", resilience.ScopeNone, `{"error":{"message":"Rate limit reached for requests. Limit: 60 / min."}}`, connection},
		{"openai", resilience.ScopeNone, `{"error":{"message":"Rate limit reached for large-3 in organization org-1 on requests per min (RPM): Limit 3, Used 3."}}`, model},
		{"openai", connection, `{"error":{"message":"Rate limit reached for o9 in organization org-1 on tokens per min (TPM)"}}`, model},
		{"vercel-ai-gateway", resilience.ScopeNone, ``, model},
		{"openai", resilience.ScopeNone, `{"error":{"message":"Rate limit reached for gpt."}}`, model},
	} {
		v := cl.Classify(Input{Provider: tt.provider, Model: "gpt", RateLimitScope: tt.set, Status: 429, Body: []byte(tt.body), Now: exampleNow})
		if v.Scope != tt.want || v.Kind != rateLimit {
			t.Errorf("%s with rate_limit_scope %v: got %v/%v, want scope %v", tt.provider, tt.set, v.Scope, v.Kind, tt.want)
		}
	}
}
