package rules

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// parts are the keys whose values are levels of their own, and needed the keys that a level can't be without.
var (
	parts = map[string]reflect.Type{
		"descriptors": reflect.TypeFor[descriptorLevel](), "rate_limit": reflect.TypeFor[limitLevel](), "replaces": reflect.TypeFor[replacesLevel](),
		"http": reflect.TypeFor[httpLevel](), "rules": reflect.TypeFor[httpRuleLevel](), "match": reflect.TypeFor[matchLevel](), "cost": reflect.TypeFor[costLevel](),
	}
	needed = map[reflect.Type][]string{
		reflect.TypeFor[domainLevel](): {"domain"}, reflect.TypeFor[descriptorLevel](): {"key"}, reflect.TypeFor[replacesLevel](): {"name"},
		reflect.TypeFor[httpRuleLevel](): {"name", "rate_limit"}, reflect.TypeFor[costLevel](): {"header"},
	}
)

type object = map[string]any

// Schema returns the JSON Schema of a file of rules, for editors: the keys of each level, what a text may be, and which
// numbers are allowed. Only Parse knows what fits together. Keys that have no effect are not in the schema.
func Schema() string {
	definitions := object{}
	for _, level := range parts {
		definitions[nameOf(level)] = levelSchema(level)
	}
	root := levelSchema(reflect.TypeFor[domainLevel]())
	root["$schema"], root["title"], root["definitions"] = "http://json-schema.org/draft-07/schema#", "Rules of gothrottle-gateway: docs/gateway.md", definitions
	text, _ := json.Marshal(root)
	return string(text) + "\n"
}

func nameOf(level reflect.Type) string { return strings.TrimSuffix(level.Name(), "Level") }

func levelSchema(level reflect.Type) object {
	properties := object{}
	for field := range level.Fields() {
		key := cmp.Or(field.Tag.Get("yaml"), strings.ToLower(field.Name))
		one := valueSchema(key, field.Type)
		if words := strings.Fields(field.Tag.Get("words")); len(words) > 0 {
			one = object{"enum": words}
		}
		properties[key] = one
	}
	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	if keys := needed[level]; keys != nil {
		s["required"] = keys
	}
	return s
}

// valueSchema is the schema of a key's value: of a level, or of what package yaml reads into a type.
func valueSchema(key string, t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[yaml.Node]():
		one := object{"$ref": "#/definitions/" + nameOf(parts[key])}
		if key == "rate_limit" { // or a list of them
			return object{"anyOf": []object{one, {"type": "array", "minItems": 1, "items": one}}}
		}
		return one
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case t == reflect.TypeFor[network](), t == reflect.TypeFor[zone]():
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"enum": []any{true, false, "yes", "no"}}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Uint32:
		return object{"type": "integer", "minimum": 0, "maximum": math.MaxUint32}
	case reflect.Slice:
		return object{"type": "array", "items": valueSchema(key, t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return object{"type": "object", "additionalProperties": valueSchema(key, t.Elem())}
		}
		return object{"type": "object"}
	}
	return object{"type": []string{"string", "integer", "boolean"}} // YAML reads 5 and yes as text, too
}
