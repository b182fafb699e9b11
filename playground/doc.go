// Command playground serves a page on this machine that shows limiters at work. Every decision on the page is made by a
// real server with gothrottle, asked by package throttle; the page only draws.
//
// With --play the page may also send traffic: to keys that begin with "playground", which are deleted when a session
// ends. Without --play the page only reads.
package main
