package main

// Root certificates for where the system has none, such as an image that holds the program alone.
// The system's own come first wherever there are any. Zones are embedded by package classify.
import _ "golang.org/x/crypto/x509roots/fallback"
