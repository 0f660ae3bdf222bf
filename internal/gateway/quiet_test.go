package gateway_test

import "log/slog"

// quiet is for servers whose connections are broken on purpose.
var quiet = slog.NewLogLogger(slog.DiscardHandler, 0)
