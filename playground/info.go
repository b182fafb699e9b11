package main

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/redis/go-redis/v9"
)

// Info is what GO.INFO tells of a key. Without a key it has no fields.
type Info struct {
	Key    string  `json:"key"`
	Fields []Field `json:"fields"`
	Error  string  `json:"error,omitempty"`
}

// Field is one field of a map, as text.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// askInfo sends GO.INFO, which changes nothing.
func askInfo(ctx context.Context, rdb *redis.Client, key string) Info {
	i := Info{Key: key}
	reply, err := rdb.Do(ctx, "GO.INFO", key).Result()
	if errors.Is(err, redis.Nil) {
		return i
	}
	if err != nil {
		i.Error = err.Error()
		return i
	}
	i.Fields = flatten("", reply)
	return i
}

// order is the order of GO.INFO's fields: a map of Go has none.
var order = map[string]int{"kind": 1, "in_use": 2, "used": 2, "held": 2, "entries": 2, "recorded": 3, "count": 3, "period_ms": 4,
	"empty_in_ms": 5, "newest_age_ms": 5, "oldest_age_ms": 6, "ends_in_ms": 6, "locked_for_ms": 7, "holders": 8, "cells": 9, "expires_in_ms": 10}

// flatten turns the reply into fields whose names say where they stand: "cell 2 in_use".
func flatten(before string, reply any) []Field {
	m, ok := reply.(map[any]any)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, fmt.Sprint(name))
	}
	sort.Slice(names, func(i, j int) bool {
		if a, b := order[names[i]], order[names[j]]; a != b {
			return a < b
		}
		return names[i] < names[j]
	})
	var fields []Field
	for _, name := range names {
		switch v := m[name].(type) {
		case []any:
			for i, cell := range v {
				prefix := ""
				if len(v) > 1 {
					prefix = fmt.Sprintf("cell %d ", i+1)
				}
				fields = append(fields, flatten(prefix, cell)...)
			}
		case map[any]any:
			fields = append(fields, flatten("holder ", v)...)
		case nil:
			fields = append(fields, Field{before + name, "unknown"})
		default:
			fields = append(fields, Field{before + name, fmt.Sprint(v)})
		}
	}
	return fields
}
