{{/* Names end at 40 characters: the longest suffix, -dispatcher-metrics, must fit into the 63 of a Service. */}}
{{- define "svc.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Never changes for a release: a Deployment's selector cannot. */}}
{{- define "svc.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "svc.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "svc.selectorLabels" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | trimAll "-._" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: svc
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
The metadata of an object. Takes a dict: root; name, a suffix of the release's name ("" for none); component ("" for none);
optionally fullname instead of name, namespace, labels and annotations.
*/}}
{{- define "svc.metadata" -}}
{{- $name := printf "%s%s" (include "svc.fullname" .root) (ternary "" (printf "-%s" .name) (empty .name)) -}}
name: {{ default $name .fullname | quote }}
namespace: {{ default .root.Release.Namespace .namespace | quote }}
labels:
  {{- include "svc.labels" .root | nindent 2 }}
  {{- with .component }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with mergeOverwrite (dict) (default (dict) .root.Values.commonAnnotations) (default (dict) .annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Made before the Job and taken away after it. Takes the weight. */}}
{{- define "svc.hookAnnotations" -}}
helm.sh/hook: pre-install,pre-upgrade,pre-rollback
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{- define "svc.image" -}}
{{- $version := ternary (printf "@%s" .Values.image.digest) (printf ":%s" (default .Chart.AppVersion .Values.image.tag)) (not (empty .Values.image.digest)) -}}
{{- printf "%s%s" .Values.image.repository $version -}}
{{- end -}}

{{- define "svc.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "svc.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "svc.secretName" -}}
{{- default (include "svc.fullname" .) .Values.secret.existingSecret -}}
{{- end -}}

{{- define "svc.settingsName" -}}
{{- default (printf "%s-settings" (include "svc.fullname" .)) .Values.config.existingSettings -}}
{{- end -}}

{{- /* Empty without migrations by hand. */ -}}
{{- define "svc.migrationsName" -}}
{{- default (ternary (printf "%s-migrations" (include "svc.fullname" .)) "" (not (empty .Values.config.migrations))) .Values.config.existingMigrations -}}
{{- end -}}

{{- define "svc.resourcesName" -}}
{{- default (printf "%s-resources" (include "svc.fullname" .)) .Values.config.existingResources -}}
{{- end -}}

{{/* What a Secret of the chart holds; the Job has one of its own. Not as stringData: a key that is taken out there stays in the Secret. */}}
{{- define "svc.secretData" -}}
{{- $keys := .Values.secret.keys -}}
{{ $keys.databaseUrl }}: {{ .Values.secret.databaseUrl | b64enc }}
{{ $keys.amqpUrl }}: {{ .Values.secret.amqpUrl | b64enc }}
{{ $keys.secretKey }}: {{ .Values.secret.secretKey | b64enc }}
{{- with .Values.secret.previousSecretKeys }}
{{ $keys.previousSecretKeys }}: {{ . | b64enc }}
{{- end }}
{{- end -}}

{{- define "svc.settingsData" -}}
{{- toYaml (dict "service.yaml" (toYaml (default (dict) .Values.config.settings))) -}}
{{- end -}}

{{/*
The ConfigMaps of what is not an object of yours. Takes a dict: root; prefix, before their names; component and annotations as svc.metadata.
*/}}
{{- define "svc.configMaps" -}}
{{- $config := .root.Values.config -}}
{{- $data := dict -}}
{{- if not $config.existingSettings -}}{{- $_ := set $data "settings" (include "svc.settingsData" .root) -}}{{- end -}}
{{- if not $config.existingResources -}}{{- $_ := set $data "resources" (toYaml $config.resources) -}}{{- end -}}
{{- if $config.migrations -}}{{- $_ := set $data "migrations" (toYaml $config.migrations) -}}{{- end -}}
{{- range $name, $files := $data }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "svc.metadata" (merge (dict "name" (print $.prefix $name)) $) | nindent 2 }}
data:
  {{- $files | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Before every path; without a slash at the end, so nothing for "/" and for "". Nothing, too, when the chart cannot see the settings. */}}
{{- define "svc.routePrefix" -}}
{{- if not .Values.config.existingSettings -}}
{{- $http := default (dict) (.Values.config.settings).http -}}
{{- ternary $http.routePrefix "/svc-api" (kindIs "string" $http.routePrefix) | trimSuffix "/" -}}
{{- end -}}
{{- end -}}

{{/* Where the console is; nothing when it is off, or when the chart cannot see the settings. */}}
{{- define "svc.consolePath" -}}
{{- $console := default (dict) (.Values.config.settings).console -}}
{{- if not (or .Values.config.existingSettings (eq (toString $console.enabled) "false")) -}}
{{- default "/console" $console.path | trimSuffix "/" -}}
{{- end -}}
{{- end -}}

{{/* Nothing where the settings name the hosts of links, which it would win over. */}}
{{- define "svc.publicUrl" -}}
{{- if .Values.api.publicUrl -}}
{{- .Values.api.publicUrl -}}
{{- else if and .Values.ingress.enabled (not ((.Values.config.settings).http).hosts) -}}
{{- $scheme := ternary "https" "http" (not (empty .Values.ingress.tls)) -}}
{{- $named := list -}}
{{- range .Values.ingress.hosts -}}
{{- if not (hasPrefix "*" .) -}}{{- $named = append $named . -}}{{- end -}}
{{- end -}}
{{- with $named -}}{{- printf "%s://%s" $scheme (first .) -}}{{- end -}}
{{- end -}}
{{- end -}}
