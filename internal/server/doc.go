// Package server puts the gateway together and runs it: configuration, store, engine, the client
// API and the admin API on one listener, reloads, and an end that cuts nobody off who can finish.
//
// It holds no rule of its own about requests or failures. What may go wrong at the start is an
// error that says what to do; what goes wrong later never ends the process.
package server
