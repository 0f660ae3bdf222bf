module omniroute/e2e

go 1.26.0

// The gateway that is tested. Its packages, internal ones included, may be imported here, since
// this module's path lies below its own.
require omniroute v0.0.0

replace omniroute => ../

// The official client.
require github.com/openai/openai-go/v3 v3.99.0

// Circuit breakers to measure ours beside.
require (
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/sony/gobreaker/v2 v2.4.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/tidwall/gjson v1.20.2 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.3.0 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
)
