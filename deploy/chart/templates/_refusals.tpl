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
{{- $texts := dict -}}
{{- if $values.budgetService.enabled }}{{ $_ := set $texts "budget.text" $values.budget.text }}{{ end -}}
{{- if $values.regions.names }}{{ $_ := set $texts "regions.budget" $values.regions.budget }}{{ end -}}
{{- range $key, $text := $texts -}}
{{- $budget := fromYaml $text -}}
{{- if not $text -}}
{{- $faults = append $faults (printf "%s: give the budget file (--set-file %s=budget.yaml)" $key $key) -}}
{{- else if $budget.Error -}}
{{- $faults = append $faults (printf "%s: not a YAML mapping: %s" $key $budget.Error) -}}
{{- else -}}
{{- $tickets := (default dict $budget.charge_tickets).key_file -}}
{{- if and $values.chargeTickets.demanded (ne (toString $tickets) "/run/tickets/ticket.key") -}}
{{- $faults = append $faults (printf "%s: the ledger would not demand charge tickets: add `charge_tickets: {key_file: /run/tickets/ticket.key}` (only a trial may do without: trial=true, chargeTickets.demanded=false)" $key) -}}
{{- else if and (not $values.chargeTickets.demanded) $tickets -}}
{{- $faults = append $faults (printf "%s demands charge tickets, and chargeTickets.demanded=false mounts no key to check them with" $key) -}}
{{- end -}}
{{- if and $budget.allow_volatile (not $values.trial) -}}
{{- $faults = append $faults (printf "%s: allow_volatile accepts a store that forgets what was spent: only for a trial (trial=true)" $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (or $values.chargeTickets.demanded $values.trial) -}}
{{- $faults = append $faults "chargeTickets.demanded=false: only for a trial (trial=true)" -}}
{{- end -}}
{{- if $values.budgetService.enabled -}}
{{- if not $values.store.kind -}}
{{- $faults = append $faults "store.kind: choose postgresql, redis or sqlite" -}}
{{- else if and (eq $values.store.kind "sqlite") (ne (int $values.budgetService.replicas) 1) -}}
{{- $faults = append $faults "budgetService.replicas: a SQLite ledger has exactly one writer: set 1" -}}
{{- else if and (eq $values.store.mark.accessMode "ReadWriteOnce") (ne $values.store.kind "sqlite") $values.store.mark.keep (ne (int $values.budgetService.replicas) 1) (ne $values.scheduling.spreadOverHosts "preferred") -}}
{{- $faults = append $faults "store.mark.accessMode: replicas on several machines share this volume: ReadWriteMany, or keep=false to run without a high-water mark" -}}
{{- else if and (ne $values.store.kind "sqlite") (not $values.store.network.to) -}}
{{- $faults = append $faults "store.network.to: say where the store is; budget-service reaches nothing else" -}}
{{- end -}}
{{- else if not $values.regions.names -}}
{{- $faults = append $faults "budgetService.enabled=false: name a region, whose ledger is in its place (regions.names)" -}}
{{- else if not $values.regions.network.to -}}
{{- $faults = append $faults "regions.network.to: say where the home is; a region reaches nothing else" -}}
{{- end -}}
{{- if and $values.regions.names (or $values.transport.insecure (not $values.regions.access)) -}}
{{- $faults = append $faults "regions: they are called with TLS and roles: give transport.tls, and regions.access" -}}
{{- end -}}
{{- if and $values.trialServers.enabled (not $values.trial) -}}
{{- $faults = append $faults "trialServers.enabled: they forget what was spent with their pods: only for a trial (trial=true)" -}}
{{- end -}}
{{- $tls := $values.transport.tls -}}
{{- $given := or $tls.dpServiceSecret $tls.budgetServiceSecret $tls.gatewaySecret $tls.access -}}
{{- if and $values.transport.insecure $given -}}
{{- $faults = append $faults "transport: insecure=true and tls contradict each other: give one of the two" -}}
{{- else if not (or $values.transport.insecure $given) -}}
{{- $faults = append $faults "transport: fill in tls, or ask for plain text behind the network policies by insecure=true" -}}
{{- else if and $given (not (and $tls.dpServiceSecret (or $tls.budgetServiceSecret (not $values.budgetService.enabled)) $tls.access (or $tls.gatewaySecret (not $values.gateway.enabled)))) -}}
{{- $faults = append $faults "transport.tls: give all of dpServiceSecret, budgetServiceSecret, gatewaySecret and access" -}}
{{- end -}}
{{- if gt (int $values.dpService.replicas.min) (int $values.dpService.replicas.max) -}}
{{- $faults = append $faults "dpService.replicas: min is above max" -}}
{{- end -}}
{{- $files := or $values.pinot.secret.authorization $values.pinot.secret.ca $values.pinot.secret.certificate -}}
{{- if ne (empty $values.pinot.secret.name) (empty $files) -}}
{{- $faults = append $faults "pinot.secret: name the Secret and the files in it, or neither" -}}
{{- end -}}
{{- if $values.gateway.enabled -}}
{{- if ternary (not (has $values.gateway.region $values.regions.names)) (not $values.budgetService.enabled) (ne $values.gateway.region "") -}}
{{- $faults = append $faults "gateway.region: name the region of this namespace whose ledger it asks, or none where there is a budget-service" -}}
{{- end -}}
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
{{- with $values.gateway.identity.jwt -}}
{{- if ne 1 (len (compact (list .keys .keys_url (ternary "discover" "" (default false .discover))))) -}}
{{- $faults = append $faults "gateway.identity.jwt.keys: give the issuer's public keys (--set-file gateway.identity.jwt.keys=issuer.jwks), or instead one of keys_url and discover=true" -}}
{{- end -}}
{{- if and (or .keys_url .discover) (not $values.gateway.issuer.to) -}}
{{- $faults = append $faults "gateway.issuer.to: say where the issuer's server is; the gateway does not reach it otherwise" -}}
{{- end -}}
{{- end -}}
{{- if and $values.gateway.broker.enabled (not $values.gateway.broker.settings.hosts) -}}
{{- $faults = append $faults "gateway.broker.settings.hosts: give the names by which callers reach the gateway, as its certificate has them" -}}
{{- end -}}
{{- if and $values.gateway.page.enabled (not (and $values.gateway.page.settings.address $values.gateway.page.settings.proxy)) -}}
{{- $faults = append $faults "gateway.page.settings: give address and proxy: people reach the page only through a proxy that has them log in" -}}
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
