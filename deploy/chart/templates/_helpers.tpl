{{- define "labels" -}}
{app.kubernetes.io/name: gothrottle, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}
{{- define "gateway" -}}
{app.kubernetes.io/name: gothrottle-gateway, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end }}
{{- define "secret" -}}
{{ .Values.secret | default .Release.Name }}
{{- end }}
{{- define "image" -}}
{{ .name }}{{ with .digest }}@{{ . }}{{ end }}
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
