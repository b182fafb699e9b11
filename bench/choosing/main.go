// Command choosing draws the pictures of docs/choosing.md: what each limiter makes of the same
// traffic. The decisions are those of package funnel.
//
//	choosing folder
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: choosing folder")
		os.Exit(2)
	}
	for _, p := range pictures() {
		if err := p.write(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "choosing:", err)
			os.Exit(1)
		}
	}
}
