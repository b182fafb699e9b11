// Package spell writes paths in many ways, for tests.
package spell

import (
	"fmt"
	"strings"
)

// Paths returns ways to write a path.
func Paths(route string) (all []string) {
	rest := strings.TrimPrefix(route, "/")
	all = []string{route, route + "/", "/" + route, "/." + route, "/x/.." + route, "/x/%2e%2e" + route, "/x%2f.." + route, "/x%2F%2e%2e%2F" + rest,
		"/%2e/" + rest, "/" + fmt.Sprintf("%%%x", rest[0]) + rest[1:], strings.ToUpper(route), route + "%2f", route + "?a=/b", route + "#a", route + ";a=b",
		"/;x" + route, "/x;/.." + route, `\` + rest, `/x\..\` + rest, "/" + fmt.Sprintf("%%25%x", rest[0]) + rest[1:], "http://h" + route, route + "%00", route + "/.", route + "/x/.."}
	for _, exempt := range []string{"/health", "/nothing"} { // back to another route
		back := strings.Repeat("%2f..", strings.Count(route, "/")) + "%2f" + exempt[1:]
		all = append(all, route+back, "/x/.."+route+back, strings.Replace(route+back, "%2f", "/", 1), route+"/.."+exempt, route+"#/../.."+exempt, route+";/../.."+exempt, exempt+"%2f.."+route, exempt+"/.."+route)
	}
	return all
}
