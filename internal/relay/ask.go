package relay

import "omniroute/failover"

// wants says what the request asks for, as far as the limits of targets depend on it.
func (x *exchange) wants() failover.Ask {
	return failover.Ask{Caller: x.Caller, Bytes: int64(len(x.Asked.Body))}
}
