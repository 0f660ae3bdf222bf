// Package page opens the dashboard of the real binary in a real Chromium and does what operators
// do: sign in, look, act, lose the gateway and get it back.
//
// Every test fails on an error in the browser's console and on anything that the page's own policy
// forbids. Screenshots are left in bin/e2e/page.
package page
