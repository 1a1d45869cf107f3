{{/* gateway.yaml; docs/gateway-reference.md explains every key. */}}
{{- define "gris.gatewayConfiguration" -}}
{{- $gateway := .Values.gateway -}}
{{- $tls := dict "certificate" "/run/gris/gateway.pem" "key" "/run/gris/gateway.key" -}}
{{- if $gateway.tls.clientCa }}{{ $_ := set $tls "client_ca" "/run/gris/ca.pem" }}{{ end -}}
{{- $dp := dict "address" "dns:///dp-service:50051" -}}
{{- $ledger := ternary (printf "region-%s" $gateway.region) "budget-service" (ne $gateway.region "") -}}
{{- $budget := dict "address" (printf "dns:///%s:50052" $ledger) -}}
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
{{- $jwt := omit . "keys" "ca" -}}
{{- if .keys }}{{ $_ := set $jwt "key_file" "/etc/gris/issuer.jwks" }}{{ end -}}
{{- if .ca }}{{ $_ := set $jwt "ca_file" "/etc/gris/issuer-ca.pem" }}{{ end -}}
{{- $_ := set $identity "jwt" $jwt -}}
{{- end -}}
{{- $releases := dict "key_file" "/run/releases/releases.key" -}}
{{- if eq $gateway.releases.kind "sqlite" -}}
{{- $_ := set $releases "file" "/var/lib/gris/releases.sqlite" -}}
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
{{- if $gateway.broker.enabled -}}
{{- $_ := set $made "broker" (merge (dict "listen" "0.0.0.0:50057") $gateway.broker.settings) -}}
{{- end -}}
{{- if $gateway.postgres.enabled -}}
{{- $postgres := merge (dict "listen" "0.0.0.0:50058") $gateway.postgres.settings -}}
{{- if not $gateway.postgres.catalogue }}{{ $_ := set $postgres "catalogue" false }}{{ end -}}
{{- $_ := set $made "postgres" $postgres -}}
{{- end -}}
{{- if $gateway.page.enabled -}}
{{- $proxies := dict "certificate" "/run/gris/gateway.pem" "key" "/run/gris/gateway.key" "client_ca" "/run/gris/ca.pem" -}}
{{- $_ := set $made "page" (merge (dict "listen" "0.0.0.0:50056" "tls" $proxies) $gateway.page.settings) -}}
{{- end -}}
{{- toYaml (merge $made $gateway.settings) -}}
{{- end }}

{{/* What callers reach, by the names of ports: {"grpc": 50054, ..}. */}}
{{- define "gris.gatewayPorts" -}}
grpc: 50054
{{- if .Values.gateway.broker.enabled }}
broker: 50057
{{- end }}
{{- if .Values.gateway.postgres.enabled }}
postgres: 50058
{{- end }}
{{- if .Values.gateway.page.enabled }}
page: 50056
{{- end }}
{{- end }}

{{/* The same, as a policy has them. */}}
{{- define "gris.gatewayPolicyPorts" -}}
{{- range $name, $port := include "gris.gatewayPorts" . | fromYaml }}
- {port: {{ $port }}, protocol: TCP}
{{- end }}
{{- end }}

{{/* Whether it runs a PostgreSQL that lists tables; empty: it does not. */}}
{{- define "gris.hasCatalogue" -}}
{{- if and .Values.gateway.postgres.enabled .Values.gateway.postgres.catalogue }}true{{ end -}}
{{- end }}
