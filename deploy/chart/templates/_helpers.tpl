{{/*
Metadata of an object: (dict "root" $ "name" "dp-service"), and "annotations" where it has some. The namespace is said,
so that what `helm template` prints shuts no other one.
*/}}
{{- define "gris.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels: {app.kubernetes.io/part-of: gris}
{{- with .annotations }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The image of one of the three programs: (dict "root" $ "name" "dp-service" "digest" ...). */}}
{{- define "gris.image" -}}
{{- $images := .root.Values.images -}}
{{- $name := printf "%s-%s" $images.prefix .name -}}
{{- if .digest -}}
{{ $name }}@{{ .digest }}
{{- else -}}
{{ $name }}:{{ $images.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* What every pod has in common: (dict "root" $ "name" "dp-service"). */}}
{{- define "gris.pod" -}}
{{- $scheduling := .root.Values.scheduling -}}
serviceAccountName: {{ .name }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {app.kubernetes.io/name: {{ .name }}}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" (eq $scheduling.spreadOverHosts "required") }}
    labelSelector:
      matchLabels: {app.kubernetes.io/name: {{ .name }}}
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $scheduling.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $scheduling.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $scheduling.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "gris.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Options of all three programs that differ from the programs' own defaults. */}}
{{- define "gris.logArgs" -}}
{{- if ne .Values.log.format "text" }}
- --log-format={{ .Values.log.format }}
{{- end }}
{{- if ne .Values.log.level "info" }}
- --log-level={{ .Values.log.level }}
{{- end }}
{{- end }}

{{/* How a service is protected from strangers: plain text behind network policies, or TLS with roles. */}}
{{- define "gris.transportArgs" -}}
{{- if .Values.transport.insecure }}
# The network policies keep strangers away.
- --insecure
{{- else }}
- --tls-certificate=/run/tls/service.pem
- --tls-key=/run/tls/service.key
- --tls-client-ca=/run/tls/ca.pem
- --access=/etc/access/access.yaml
{{- end }}
{{- end }}

{{- define "gris.transportMounts" -}}
{{- if not .Values.transport.insecure }}
- {name: transport, mountPath: /run/tls, readOnly: true}
- {name: access, mountPath: /etc/access, readOnly: true}
{{- end }}
{{- end }}

{{/* (dict "root" $ "secret" NAME) */}}
{{- define "gris.transportVolumes" -}}
{{- if not .root.Values.transport.insecure }}
- name: transport
  secret: {secretName: {{ .secret }}, defaultMode: 288}
- name: access
  configMap: {name: gris-access}
{{- end }}
{{- end }}

{{/* A volume that outlives its pod and the release: (dict "root" $ "name" ... "volume" ...). */}}
{{- define "gris.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
{{- /* `helm uninstall` leaves it. */}}
metadata: {{ include "gris.metadata" (dict "root" .root "name" .name "annotations" (dict "helm.sh/resource-policy" "keep")) | nindent 2 }}
spec:
  accessModes: [{{ .volume.accessMode | default "ReadWriteOnce" }}]
  {{- if .volume.storageClass }}
  storageClassName: {{ .volume.storageClass }}
  {{- else }}
  # yours: storageClassName, unless the cluster's default class will do
  {{- end }}
  resources:
    requests: {storage: {{ .volume.size }}}
{{- end }}

{{/* Ports and probes of a pod that serves a ledger, budget-service or a region. */}}
{{- define "gris.ledgerProbes" -}}
ports:
  - {name: grpc, containerPort: 50052}
  - {name: metrics, containerPort: 9464}
  - {name: health, containerPort: 9465}
# Started as soon as it answers: a store that does not answer for longer must not end it.
startupProbe:
  grpc: {port: 9465, service: gris.budget.v1.BudgetService/alive}
  periodSeconds: 1
  failureThreshold: 60
# Not ready while its own store does not answer, but alive: a restart would not bring the store back. A region
# without its home is ready, and serves what it holds.
readinessProbe:
  grpc: {port: 9465}
  periodSeconds: 2
  failureThreshold: 1
livenessProbe:
  grpc: {port: 9465, service: gris.budget.v1.BudgetService/alive}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{- define "gris.dnsPorts" -}}
[{port: 53, protocol: UDP}, {port: 53, protocol: TCP}, {port: 5353, protocol: UDP}, {port: 5353, protocol: TCP}]
{{- end }}
