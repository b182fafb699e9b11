{{- define "labels" -}}
{app.kubernetes.io/name: gothrottle, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}
{{- define "gateway" -}}
{app.kubernetes.io/name: gothrottle-gateway, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}
{{- define "secret" -}}
{{ .Values.secret | default .Release.Name | quote }}
{{- end }}
{{- define "image" -}}
{{ print .name (ternary "@" "" (ne .digest "")) .digest | quote }}
{{- end }}
{{- define "text" -}}
{{ kindIs "string" . | ternary . (toJson .) | quote }}
{{- end }}
{{- define "client" -}}
"$(command -v redis-cli || command -v valkey-cli)"{{ if .Values.tls.secret }} --tls --insecure{{ end }}
{{- end }}
{{- define "confined" -}}
{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
{{- end }}
{{- define "scheduling" -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "imagePullSecrets" "priorityClassName" }}
{{- with index $ $key }}
{{ $key }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
