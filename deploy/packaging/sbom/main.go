// Command sbom writes the bill of materials of the module as CycloneDX JSON to standard output. What it lists, it reads
// from the module's file.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"errors"
	"flag"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	path, version := flag.String("module", "", "the module's file"), flag.String("version", "", "the module's version")
	flag.Parse()
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	text, unread := os.ReadFile(*path)
	bom, wrong := describe(text, *version)
	if err := errors.Join(err, unread, wrong); err != nil {
		log.Fatal("sbom: ", err)
	}
	bom.Metadata.Timestamp = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	if err := cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		log.Fatal("sbom: ", err)
	}
}

// describe lists the module, and what it is linked with: the Go standard library, other Go modules, and the shared libraries
// that the server's machine must have, with the versions of their symbols that the module asks for.
func describe(text []byte, version string) (*cdx.BOM, error) {
	info, err := buildinfo.Read(bytes.NewReader(text))
	file, wrong := elf.NewFile(bytes.NewReader(text))
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	needs, err := file.DynamicVersionNeeds()
	sum := sha256.Sum256(text)
	product := golang(info.Main.Path, version, "MIT")
	product.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	for _, s := range info.Settings {
		property(&product, "gothrottle:build:"+s.Key, s.Value)
	}
	parts := []cdx.Component{golang("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "BSD-3-Clause")}
	for _, dep := range info.Deps {
		parts = append(parts, golang(dep.Path, dep.Version, ""))
	}
	for _, library := range needs {
		part := cdx.Component{BOMRef: library.Name, Type: cdx.ComponentTypeLibrary, Name: library.Name}
		for _, need := range library.Needs {
			property(&part, "gothrottle:needs", need.Dep)
		}
		parts = append(parts, part)
	}
	refs := []string{}
	for _, part := range parts {
		refs = append(refs, part.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata, bom.Components = &cdx.Metadata{Component: &product}, &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: product.BOMRef, Dependencies: &refs}}
	return bom, err
}

func property(c *cdx.Component, name, value string) {
	if c.Properties == nil {
		c.Properties = &[]cdx.Property{}
	}
	*c.Properties = append(*c.Properties, cdx.Property{Name: name, Value: value})
}

// golang returns a Go module. The licence may be unknown.
func golang(path, version, licence string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
	if licence != "" {
		c.Licenses = &cdx.Licenses{{License: &cdx.License{ID: licence}}}
	}
	return c
}
