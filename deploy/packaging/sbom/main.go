// Command sbom writes the bill of materials of the module as CycloneDX JSON to standard output. What it lists, it reads
// from the module's file.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	path := flag.String("module", "", "the module's file")
	version := flag.String("version", "", "the module's version")
	flag.Parse()
	if err := run(os.Stdout, *path, *version, os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(to io.Writer, path, version, epoch string) error {
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	product, err := describe(path, version)
	if err != nil {
		return err
	}
	parts, err := contents(path)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: time.Unix(seconds, 0).UTC().Format(time.RFC3339), Component: &product}
	bom.Components = &parts
	var refs []string
	for _, part := range parts {
		refs = append(refs, part.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: product.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(to, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// describe returns the module itself.
func describe(path, version string) (cdx.Component, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return cdx.Component{}, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return cdx.Component{}, err
	}
	var settings []cdx.Property
	for _, s := range info.Settings {
		settings = append(settings, cdx.Property{Name: "gothrottle:build:" + s.Key, Value: s.Value})
	}
	sum := sha256.Sum256(text)
	product := golang(info.Main.Path, version)
	product.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	product.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}}
	product.Properties = &settings
	return product, nil
}

// contents returns what the module is linked with: the Go standard library, other Go modules, and the shared libraries
// that the server's machine must have.
func contents(path string) ([]cdx.Component, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	standard := golang("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	standard.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "BSD-3-Clause"}}}
	parts := []cdx.Component{standard}
	for _, dep := range info.Deps {
		parts = append(parts, golang(dep.Path, dep.Version))
	}
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	needs, err := file.DynamicVersionNeeds()
	if err != nil {
		return nil, err
	}
	for _, library := range needs {
		parts = append(parts, shared(library))
	}
	return parts, nil
}

// shared returns a library that the server's machine must have. The properties are the versions of its symbols that the
// module asks for.
func shared(library elf.DynamicVersionNeed) cdx.Component {
	var versions []cdx.Property
	for _, need := range library.Needs {
		versions = append(versions, cdx.Property{Name: "gothrottle:needs", Value: need.Dep})
	}
	return cdx.Component{
		BOMRef:     library.Name,
		Type:       cdx.ComponentTypeLibrary,
		Name:       library.Name,
		Properties: &versions,
	}
}

func golang(path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
}
