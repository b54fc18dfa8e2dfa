{{- define "queued-crawler.labels" -}}
app.kubernetes.io/name: queued-crawler
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{/* The pod of a role: a dict of root, role and values. */}}
{{- define "queued-crawler.pod" -}}
metadata:
  labels:
    {{- include "queued-crawler.labels" . | nindent 4 }}
  {{- with .root.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  # Running crawls, and the seconds before they are told to end.
  terminationGracePeriodSeconds: {{ add .root.Values.shutdownSeconds 25 }}
  automountServiceAccountToken: false
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    fsGroup: 10001
  containers:
    - name: queued-crawler
      image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      env:
        - name: ROLE
          value: {{ .role }}
        - name: SHUTDOWN_SECONDS
          value: {{ .root.Values.shutdownSeconds | quote }}
        {{- if .root.Values.mongodb.uri }}
        - name: MONGODB_URI
          value: {{ .root.Values.mongodb.uri | quote }}
        {{- else if .root.Values.mongodb.existingSecret }}
        - name: MONGODB_URI
          valueFrom:
            secretKeyRef:
              name: {{ .root.Values.mongodb.existingSecret }}
              key: {{ .root.Values.mongodb.key }}
        {{- end }}
        {{- range $name, $value := .root.Values.settings }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      envFrom:
        - secretRef:
            name: {{ .root.Values.existingSecret }}
      ports:
        - name: http
          containerPort: 8080
      # Ten minutes: a new version may have to build indexes of a large database first.
      startupProbe:
        httpGet: { path: /healthz, port: http }
        periodSeconds: 2
        failureThreshold: 300
      livenessProbe:
        httpGet: { path: /healthz, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: { path: /readyz, port: http }
        periodSeconds: 5
        timeoutSeconds: 3
      {{- if ne .role "worker" }}
      # Endpoints learn that a pod goes before it refuses connections. The image has no shell.
      lifecycle:
        preStop:
          exec:
            command: [node, -e, "setTimeout(() => {}, 5000)"]
      {{- end }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- if (.values.persistence).enabled }}
        - name: data
          mountPath: /data
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
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
{{- end }}
