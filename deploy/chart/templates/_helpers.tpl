{{/* Metadata of every object. Selectors and pods have fewer labels, those of deploy/kubernetes. */}}
{{- define "gris.labels" -}}
app.kubernetes.io/part-of: gris
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
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
metadata:
  name: {{ .name }}
  labels: {{ include "gris.labels" .root | nindent 4 }}
  annotations:
    # `helm uninstall` leaves it.
    helm.sh/resource-policy: keep
spec:
  accessModes: [{{ .volume.accessMode | default "ReadWriteOnce" }}]
  {{- with .volume.storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests: {storage: {{ .volume.size }}}
{{- end }}

{{- define "gris.dnsPorts" -}}
[{port: 53, protocol: UDP}, {port: 53, protocol: TCP}, {port: 5353, protocol: UDP}, {port: 5353, protocol: TCP}]
{{- end }}

{{/* gateway.yaml; docs/gateway.md explains every key. */}}
{{- define "gris.gatewayConfiguration" -}}
{{- $gateway := .Values.gateway -}}
{{- $tls := dict "certificate" "/run/gris/gateway.pem" "key" "/run/gris/gateway.key" -}}
{{- if $gateway.tls.clientCa }}{{ $_ := set $tls "client_ca" "/run/gris/ca.pem" }}{{ end -}}
{{- $dp := dict "address" "dns:///dp-service:50051" -}}
{{- $budget := dict "address" "dns:///budget-service:50052" -}}
{{- if not .Values.transport.insecure -}}
{{- range $each := list $dp $budget -}}
{{- $_ := set $each "ca_file" "/run/services/ca.pem" -}}
{{- $_ := set $each "certificate_file" "/run/services/client.pem" -}}
{{- $_ := set $each "key_file" "/run/services/client.key" -}}
{{- end -}}
{{- end -}}
{{- $pinot := merge (dict "broker" .Values.pinot.broker "controller" .Values.pinot.controller) .Values.pinot.settings -}}
{{- with .Values.pinot.secret.authorization }}{{ $_ := set $pinot "authorization_file" (printf "/run/pinot/%s" .) }}{{ end -}}
{{- with .Values.pinot.secret.ca }}{{ $_ := set $pinot "ca_file" (printf "/run/pinot/%s" .) }}{{ end -}}
{{- with .Values.pinot.secret.certificate }}{{ $_ := set $pinot "certificate_file" (printf "/run/pinot/%s" .) }}{{ end -}}
{{- $identity := dict -}}
{{- with $gateway.identity.certificates }}{{ $_ := set $identity "certificates" . }}{{ end -}}
{{- with $gateway.identity.jwt -}}
{{- $_ := set $identity "jwt" (merge (dict "key_file" "/etc/gris/issuer.jwks") (omit . "keys")) -}}
{{- end -}}
{{- $releases := dict "key_file" "/run/releases/releases.key" -}}
{{- $history := deepCopy ($gateway.settings.history | default dict) -}}
{{- if eq $gateway.releases.kind "sqlite" -}}
{{- $_ := set $releases "file" "/var/lib/gris/releases.sqlite" -}}
{{- /* A history that an earlier gateway has left here is moved into the release store. */ -}}
{{- $_ := set $history "file" "/var/lib/gris/history.sqlite" -}}
{{- else -}}
{{- $_ := set $releases "connection_file" "/run/releases/connection" -}}
{{- end -}}
{{- $previous := list -}}
{{- range $gateway.releases.previous }}{{ $previous = append $previous (printf "/run/releases/%s" .) }}{{ end -}}
{{- with $previous }}{{ $_ := set $releases "previous_key_files" . }}{{ end -}}
{{- $made := dict "listen" "0.0.0.0:50054" "tls" $tls "dp" $dp "budget" $budget -}}
{{- $_ := set $made "engine" (dict "pinot" $pinot) -}}
{{- $_ := set $made "identity" $identity -}}
{{- $_ := set $made "releases" $releases -}}
{{- with $history }}{{ $_ := set $made "history" . }}{{ end -}}
{{- toYaml (merge $made (omit $gateway.settings "history")) -}}
{{- end }}

{{/* Stops with every fault of the values that their schema cannot see. */}}
{{- define "gris.demandSound" -}}
{{- $values := .Values -}}
{{- $faults := list -}}
{{- if not $values.images.prefix -}}
{{- $faults = append $faults "images.prefix: say where the images are, such as registry.example/gris for registry.example/gris-dp-service" -}}
{{- end -}}
{{- if eq (empty $values.policy.text) (empty $values.policy.configMap) -}}
{{- $faults = append $faults "policy: give text (--set-file policy.text=policy.yaml) or configMap, one of the two" -}}
{{- end -}}
{{- $budget := fromYaml $values.budget.text -}}
{{- if not $values.budget.text -}}
{{- $faults = append $faults "budget.text: give the budget file (--set-file budget.text=budget.yaml)" -}}
{{- else if $budget.Error -}}
{{- $faults = append $faults (printf "budget.text: not a YAML mapping: %s" $budget.Error) -}}
{{- else -}}
{{- $tickets := (default dict $budget.charge_tickets).key_file -}}
{{- if and $values.chargeTickets.demanded (ne (toString $tickets) "/run/tickets/ticket.key") -}}
{{- $faults = append $faults "budget.text: the ledger would not demand charge tickets: add `charge_tickets: {key_file: /run/tickets/ticket.key}` (only a trial may do without: trial=true, chargeTickets.demanded=false)" -}}
{{- else if and (not $values.chargeTickets.demanded) $tickets -}}
{{- $faults = append $faults "budget.text demands charge tickets, and chargeTickets.demanded=false mounts no key to check them with" -}}
{{- end -}}
{{- if and $budget.allow_volatile (not $values.trial) -}}
{{- $faults = append $faults "budget.text: allow_volatile accepts a store that forgets what was spent: only for a trial (trial=true)" -}}
{{- end -}}
{{- end -}}
{{- if not (or $values.chargeTickets.demanded $values.trial) -}}
{{- $faults = append $faults "chargeTickets.demanded=false: only for a trial (trial=true)" -}}
{{- end -}}
{{- if not $values.store.kind -}}
{{- $faults = append $faults "store.kind: choose postgresql, redis or sqlite" -}}
{{- else if and (eq $values.store.kind "sqlite") (ne (int $values.budgetService.replicas) 1) -}}
{{- $faults = append $faults "budgetService.replicas: a SQLite ledger has exactly one writer: set 1" -}}
{{- else if and (eq $values.store.mark.accessMode "ReadWriteOnce") (ne $values.store.kind "sqlite") $values.store.mark.keep (ne (int $values.budgetService.replicas) 1) (ne $values.scheduling.spreadOverHosts "preferred") -}}
{{- $faults = append $faults "store.mark.accessMode: replicas on several machines share this volume: ReadWriteMany, or keep=false to run without a high-water mark" -}}
{{- else if and (ne $values.store.kind "sqlite") (not $values.store.network.to) -}}
{{- $faults = append $faults "store.network.to: say where the store is; budget-service reaches nothing else" -}}
{{- end -}}
{{- $tls := $values.transport.tls -}}
{{- $given := or $tls.dpServiceSecret $tls.budgetServiceSecret $tls.gatewaySecret $tls.access -}}
{{- if and $values.transport.insecure $given -}}
{{- $faults = append $faults "transport: insecure=true and tls contradict each other: give one of the two" -}}
{{- else if not (or $values.transport.insecure $given) -}}
{{- $faults = append $faults "transport: fill in tls, or ask for plain text behind the network policies by insecure=true" -}}
{{- else if and $given (not (and $tls.dpServiceSecret $tls.budgetServiceSecret $tls.access (or $tls.gatewaySecret (not $values.gateway.enabled)))) -}}
{{- $faults = append $faults "transport.tls: give all of dpServiceSecret, budgetServiceSecret, gatewaySecret and access" -}}
{{- end -}}
{{- if and (not $values.dpService.adaptiveTables.configMap) (not $values.dpService.adaptiveTables.claim) -}}
{{- $faults = append $faults "dpService.adaptiveTables: name a configMap, which need not exist, or a claim" -}}
{{- end -}}
{{- if gt (int $values.dpService.replicas.min) (int $values.dpService.replicas.max) -}}
{{- $faults = append $faults "dpService.replicas: min is above max" -}}
{{- end -}}
{{- $files := or $values.pinot.secret.authorization $values.pinot.secret.ca $values.pinot.secret.certificate -}}
{{- if ne (empty $values.pinot.secret.name) (empty $files) -}}
{{- $faults = append $faults "pinot.secret: name the Secret and the files in it, or neither" -}}
{{- end -}}
{{- if $values.gateway.enabled -}}
{{- if not (and $values.pinot.controller $values.pinot.broker) -}}
{{- $faults = append $faults "pinot: give controller and broker" -}}
{{- end -}}
{{- if not $values.pinot.network.to -}}
{{- $faults = append $faults "pinot.network.to: say where Pinot is; the gateway reaches nothing else" -}}
{{- end -}}
{{- if not (or $values.gateway.identity.certificates $values.gateway.identity.jwt) -}}
{{- $faults = append $faults "gateway.identity: say who callers are, by certificates, jwt or both" -}}
{{- end -}}
{{- if and $values.gateway.identity.certificates (not $values.gateway.tls.clientCa) -}}
{{- $faults = append $faults "gateway.tls.clientCa: identity.certificates needs it, and ca.pem in the Secret" -}}
{{- end -}}
{{- if and $values.gateway.identity.jwt (not (default dict $values.gateway.identity.jwt).keys) -}}
{{- $faults = append $faults "gateway.identity.jwt.keys: give the issuer's public keys (--set-file gateway.identity.jwt.keys=issuer.jwks)" -}}
{{- end -}}
{{- if eq $values.gateway.releases.kind "sqlite" -}}
{{- if gt (int $values.gateway.replicas) 1 -}}
{{- $faults = append $faults "gateway.replicas: a release store in a file is for one gateway: set 1, or gateway.releases.kind=postgresql" -}}
{{- end -}}
{{- if not (or $values.gateway.volume.keep $values.trial) -}}
{{- $faults = append $faults "gateway.volume.keep=false: releases would be drawn anew after each restart, which shows whether rows have changed: only for a trial (trial=true)" -}}
{{- end -}}
{{- else if not $values.gateway.releases.network.to -}}
{{- $faults = append $faults "gateway.releases.network.to: say where the database of the release store is; the gateway does not reach it otherwise" -}}
{{- end -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "these values are refused:\n  - %s" (join "\n  - " $faults)) -}}
{{- end -}}
{{- end }}
