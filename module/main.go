// Command module is the loadable module: built with -buildmode=c-shared it is the
// shared object that redis-server --loadmodule takes. All it does is to name the
// version; the server finds RedisModule_OnLoad in package cgo.
package main

import "gothrottle/cgo"

// version is the module's version, shown by INFO gothrottle and MODULE LIST.
const version = "0.1.0"

func init() { cgo.Version = version }

func main() {}
