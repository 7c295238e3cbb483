{{/* The operator's flags, as a YAML list. The kubelet fills in $(POD_NAMESPACE) and $(SIDECAR_IMAGE), so that an overlay can change
     both without touching the list. */}}
{{- define "ringmaster.operatorArgs" -}}
{{- /* The operator refuses a flag that is given twice: one of extraArgs comes in the place of the chart's own. */}}
{{- $given := list }}
{{- range .Values.extraArgs }}
{{- $given = append $given (splitList "=" . | first) }}
{{- end }}
{{- $args := list }}
{{- range include "ringmaster.chartArgs" . | fromYamlArray }}
{{- if not (has (splitList "=" . | first) $given) }}
{{- $args = append $args . }}
{{- end }}
{{- end }}
{{- concat $args .Values.extraArgs | toYaml }}
{{- end -}}

{{- define "ringmaster.chartArgs" -}}
- --listen=0.0.0.0:{{ .Values.ports.grpc }}
- --sidecar-target={{ include "ringmaster.fullname" . }}.$(POD_NAMESPACE).svc:{{ .Values.ports.grpc }}
- --sidecar-image=$(SIDECAR_IMAGE)
- --sidecar-image-pull-policy={{ .Values.sidecar.image.pullPolicy }}
- --metrics-listen=0.0.0.0:{{ .Values.ports.metrics }}
{{- if .Values.metrics.secure }}
- --metrics-secure
{{- end }}
- --health-listen=0.0.0.0:{{ .Values.ports.health }}
{{- if .Values.page.enabled }}
- --page-listen=0.0.0.0:{{ .Values.ports.page }}
{{- end }}
- --workers={{ .Values.workers }}
- --kube-qps={{ .Values.kubeApi.qps }}
- --kube-burst={{ .Values.kubeApi.burst }}
- --log-format={{ .Values.log.format }}
- --log-level={{ .Values.log.level }}
{{- if .Values.leaderElection.enabled }}
- --leader-elect
- --leader-election-namespace=$(POD_NAMESPACE)
- --leader-election-name={{ include "ringmaster.fullname" . }}
{{- end }}
{{- with .Values.sidecar.resources }}
- {{ printf "--sidecar-resources=%s" (toJson .) | quote }}
{{- end }}
{{- if not .Values.jobs.gangAdmission }}
- --gang-admission=false
{{- end }}
{{- if ne .Values.jobs.podGroups "Auto" }}
- --pod-groups={{ .Values.jobs.podGroups }}
{{- end }}
{{- if ne .Values.jobs.autoscaling.mode "None" }}
- --autoscaling={{ .Values.jobs.autoscaling.mode }}
- --autoscaling-after-seconds={{ .Values.jobs.autoscaling.afterSeconds }}
- --autoscaling-within-seconds={{ .Values.jobs.autoscaling.withinSeconds }}
- --autoscaling-jobs={{ .Values.jobs.autoscaling.jobs }}
{{- if eq .Values.jobs.autoscaling.mode "ProvisioningRequest" }}
- --autoscaling-class={{ .Values.jobs.autoscaling.provisioningClass }}
{{- end }}
{{- end }}
{{- if .Values.jobs.kueue }}
- --kueue
{{- end }}
{{- if not .Values.jobs.networkPolicy.enabled }}
- --network-policy=false
{{- end }}
{{- with .Values.jobs.networkPolicy.metricsNamespace }}
- --metrics-namespace={{ . }}
{{- end }}
{{- with .Values.nodes.disruptionTaints }}
- --disruption-taints={{ join "," . }}
{{- end }}
{{- if .Values.nodes.trustNodeDeletion }}
- --trust-node-deletion
{{- end }}
{{- with .Values.watchNamespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}
{{- if .Values.config }}
- --config=/etc/ringmaster/config.yaml
{{- end }}
{{- end -}}
