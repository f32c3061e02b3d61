{{/*
Seconds from the start of a stop to the kill. The kubelet counts preStop into it. An API pod serves on for preStopSeconds, then
finishes its requests, 10 s at most; a dispatcher finishes the attempts that it has begun, webhooks.timeout at most. To both come 5 s for
what follows from the work in hand and 5 s for closing (finishLimitMs of src/app/generations.ts, closeLimitMs of src/app/run.ts), and 5 s to spare.
*/}}
{{- define "svc.api.leastGraceSeconds" -}}
{{- add .Values.api.preStopSeconds 25 -}}
{{- end -}}

{{/* Nothing when the chart cannot see the timeout. */}}
{{- define "svc.dispatcher.leastGraceSeconds" -}}
{{- $timeout := ((.Values.config.settings).webhooks).timeout | default 30.0 -}}
{{- if not (or .Values.config.existingSettings (kindIs "string" $timeout)) -}}
{{- add (ceil (maxf 10 $timeout)) 15 -}}
{{- end -}}
{{- end -}}

{{/* Annotations that change with what a pod reads at its start, so that a change rolls the pods. */}}
{{- define "svc.checksums" -}}
{{- if .Values.config.rollOnChange }}
{{- if not .Values.config.existingSettings }}
checksum/settings: {{ include "svc.settingsData" . | sha256sum }}
{{- end }}
{{- if not .Values.config.existingResources }}
checksum/resources: {{ toYaml .Values.config.resources | sha256sum }}
{{- end }}
{{- if .Values.config.migrations }}
checksum/migrations: {{ toYaml .Values.config.migrations | sha256sum }}
{{- end }}
{{- if not .Values.secret.existingSecret }}
checksum/secret: {{ include "svc.secretData" . | sha256sum }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A variable from the Secret. Takes a dict: name, secret, key, optional. */}}
{{- define "svc.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret | quote }}
      key: {{ .key | quote }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end -}}

{{/*
The metadata and the spec of a pod with one container of the image, what the API, the dispatcher and the Job have in common.
Takes a dict: root; component; values, those of the component; args; serviceAccount, secret, settings, resources and migrations, the names of
what it uses; databaseKey, another key of the PostgreSQL URL in the Secret; annotations; env, its own variables; container and pod, more fields of the two.
*/}}
{{- define "svc.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    # Without the chart's version: a new chart alone rolls no pods.
    {{- include "svc.selectorLabels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with mergeOverwrite (dict) (default (dict) $values.commonLabels) (default (dict) .values.podLabels) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- $annotations := mergeOverwrite (dict) (fromYaml (default "" .annotations)) (default (dict) .values.podAnnotations) }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ .serviceAccount | quote }}
  automountServiceAccountToken: {{ $values.serviceAccount.automountToken }}
  # No variable for every Service of the namespace: one named "svc" would be taken for settings.
  enableServiceLinks: false
  {{- with $values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . | quote }}
    {{- end }}
  {{- end }}
  {{- with .pod }}
  {{- . | nindent 2 }}
  {{- end }}
  securityContext:
    {{- toYaml $values.podSecurityContext | nindent 4 }}
  containers:
    - name: {{ .component }}
      image: {{ include "svc.image" .root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{ toJson .args }}
      env:
        - name: SVC_CONFIG_DIR
          value: /etc/svc
        - name: SVC_DATA_DIR
          value: /data
        - name: SVC_AUTO_MIGRATE
          value: "false"
        {{- include "svc.secretEnv" (dict "name" "DATABASE_URL" "secret" .secret "key" (default $values.secret.keys.databaseUrl .databaseKey)) | nindent 8 }}
        {{- with .env }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with concat (default (list) $values.extraEnv) (default (list) .values.extraEnv) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .container }}
      {{- . | nindent 6 }}
      {{- end }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        {{- toYaml $values.securityContext | nindent 8 }}
      volumeMounts:
        # Folders, not single files: a folder follows its ConfigMap, which is what `svc-admin reload` reads.
        - name: settings
          mountPath: /etc/svc
          readOnly: true
        - name: resources
          mountPath: /etc/svc/resources
          readOnly: true
        {{- if .migrations }}
        - name: migrations
          mountPath: /etc/svc/migrations
          readOnly: true
        {{- end }}
        - name: data
          mountPath: /data
        - name: tmp
          mountPath: /tmp
        {{- with $values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: settings
      configMap:
        name: {{ .settings | quote }}
        {{- with $values.config.existingSettingsKey }}
        items:
          - key: {{ . | quote }}
            path: service.yaml
        {{- end }}
    - name: resources
      configMap:
        name: {{ .resources | quote }}
    {{- if .migrations }}
    - name: migrations
      configMap:
        name: {{ .migrations | quote }}
    {{- end }}
    - name: data
      emptyDir:
        sizeLimit: {{ $values.scratch.data }}
    - name: tmp
      emptyDir:
        sizeLimit: {{ $values.scratch.tmp }}
    {{- with $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
{{- end -}}

{{/* A Deployment of a program. Takes a dict: root; component; values; isScaled; graceSeconds; readyPath; env; ports and lifecycle of the container. */}}
{{- define "svc.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "svc.metadata" (dict "root" .root "name" .component "component" .component) | nindent 2 }}
spec:
  {{- if not .isScaled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate:
      # A pod goes only when another has taken its place.
      maxUnavailable: 0
      maxSurge: 25%
  selector:
    matchLabels:
      {{- include "svc.selectorLabels" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    {{- include "svc.pod" (dict
      "root" .root "component" .component "values" .values "args" (list .component)
      "serviceAccount" (include "svc.serviceAccountName" .root) "secret" (include "svc.secretName" .root)
      "settings" (include "svc.settingsName" .root) "resources" (include "svc.resourcesName" .root) "migrations" (include "svc.migrationsName" .root)
      "annotations" (include "svc.checksums" .root) "env" (include "svc.serverEnv" .)
      "container" (include "svc.serverContainer" .) "pod" (include "svc.serverPod" .)
    ) | nindent 4 }}
{{- end -}}

{{- define "svc.serverEnv" -}}
{{- $keys := .root.Values.secret.keys -}}
{{- $secret := include "svc.secretName" .root -}}
{{ include "svc.secretEnv" (dict "name" "AMQP_URL" "secret" $secret "key" $keys.amqpUrl) }}
{{ include "svc.secretEnv" (dict "name" "SVC_SECRET_KEY" "secret" $secret "key" $keys.secretKey) }}
{{ include "svc.secretEnv" (dict "name" "SVC_PREVIOUS_SECRET_KEYS" "secret" $secret "key" $keys.previousSecretKeys "optional" true) }}
- name: SVC_METRICS_PORT
  value: "9090"
{{- /* For the dispatcher too: with the same settings, all processes have one checksum of their configuration. */}}
{{- with include "svc.publicUrl" .root }}
- name: SVC_PUBLIC_URL
  value: {{ . | quote }}
{{- end }}
{{- with .root.Values.tracing.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .env }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "svc.serverContainer" -}}
ports:
  {{- with .ports }}
  {{- . | nindent 2 }}
  {{- end }}
  - name: metrics
    containerPort: 9090
# A process that waits for its database or broker is alive and not ready: only a hung one is restarted.
startupProbe:
  httpGet: { path: /livez, port: metrics }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 30
livenessProbe:
  httpGet: { path: /livez, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: {{ quote .readyPath }}, port: metrics }
  periodSeconds: 5
  # Longer than the 2 s that it gives each of its checks.
  timeoutSeconds: 4
  failureThreshold: 2
{{- with .lifecycle }}
lifecycle:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "svc.serverPod" -}}
terminationGracePeriodSeconds: {{ .graceSeconds }}
topologySpreadConstraints:
  {{- with .values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "svc.selectorLabels" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
    # Those of one version: the ones that an upgrade takes away do not count.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
{{- end -}}

{{/* A HorizontalPodAutoscaler on CPU and memory. Takes a dict: root, component, autoscaling. */}}
{{- define "svc.horizontalPodAutoscaler" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "svc.metadata" (dict "root" .root "name" .component "component" .component) | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "svc.fullname" .root }}-{{ .component }}
  minReplicas: {{ .autoscaling.minReplicas }}
  maxReplicas: {{ .autoscaling.maxReplicas }}
  metrics:
    {{- range $name, $target := dict "cpu" .autoscaling.targetCPU "memory" .autoscaling.targetMemory }}
    {{- if $target }}
    - type: Resource
      resource:
        name: {{ $name }}
        target:
          type: Utilization
          averageUtilization: {{ $target }}
    {{- end }}
    {{- end }}
  {{- with .autoscaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Takes a dict: root, component, budget. */}}
{{- define "svc.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "svc.metadata" (dict "root" .root "name" .component "component" .component) | nindent 2 }}
spec:
  maxUnavailable: {{ .budget.maxUnavailable }}
  # A pod that is not ready does no work: it must not hold up the drain of a node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "svc.selectorLabels" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/*
Where the metrics of a program are. No address of its own, so that every pod is found, those too that are not ready: what they
count tells why. Takes a dict: root, component.
*/}}
{{- define "svc.metricsService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "svc.metadata" (dict "root" .root "name" (printf "%s-metrics" .component) "component" .component "labels" (dict "svc/metrics" "true")) | nindent 2 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "svc.selectorLabels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  ports:
    - name: metrics
      port: 9090
      targetPort: metrics
{{- end -}}
