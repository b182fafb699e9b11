package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// read returns the files: one, or all in a folder and below it. A name that begins with a dot isn't a file of rules:
// Kubernetes keeps the versions of a ConfigMap in such folders.
func read(root string) (files []file, err error) {
	root, err = filepath.EvalSymlinks(root) // WalkDir does not follow a link
	if err != nil {
		return nil, fmt.Errorf("no rules: set CONFIG to a file or folder: %w", err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		hidden := path != root && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return filepath.SkipDir
		case hidden || d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		files = append(files, file{path, string(text)})
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no rule file in %s: set CONFIG to a file or folder", root)
	}
	return files, err
}

// load reads and parses the files, and puts their rules into force if all are right.
func (s *service) load() error {
	files, err := read(s.config)
	if err == nil && slices.Equal(files, s.files) {
		return nil
	}
	var r *rules
	if err == nil {
		s.files = files
		if r, err = parse(files, s.merge); err == nil {
			err = s.engine.bind(r)
		}
	}
	if err != nil {
		s.metrics.loads.WithLabelValues("refused").Inc()
		return err
	}
	for _, line := range r.warnings {
		s.log.Warn(line)
	}
	s.rules.Store(r)
	s.metrics.loads.WithLabelValues("loaded").Inc()
	s.log.Info("rules loaded", "files", len(files), "domains", len(r.domains), "limits", len(r.limits))
	return nil
}

// watch compares the files with those that were loaded. An error is logged once.
func (s *service) watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	before := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.load()
		text := fmt.Sprint(err)
		if err != nil && text != before {
			s.log.Error("the rules are refused, and the old ones stay in force", "error", err)
		}
		before = text
	}
}
