{{/* The rights for jobs and what belongs to them, cluster-wide or in each of watchNamespaces. The table in the chart's README says what
     each is for; a test compares the two. */}}
{{- define "ringmaster.jobRules" -}}
- apiGroups: [ringmaster.dev]
  resources: [horovodjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [ringmaster.dev]
  resources: [horovodjobs/status]
  verbs: [update]
- apiGroups: [ringmaster.dev]
  resources: [horovodjobs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list, create, patch]
{{- if .Values.page.enabled }}
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
{{- if ne .Values.jobs.podGroups "Never" }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch]
{{- end }}
{{- if and .Values.jobs.gangAdmission (eq .Values.jobs.autoscaling.mode "ProvisioningRequest") }}
- apiGroups: [autoscaling.x-k8s.io]
  resources: [provisioningrequests]
  verbs: [list, watch, create, delete]
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [create, delete]
{{- end }}
{{- if .Values.jobs.kueue }}
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{/* What Kueue's admissions speak of, which is in no namespace. */}}
{{- define "ringmaster.queueRules" -}}
- apiGroups: [kueue.x-k8s.io]
  resources: [resourceflavors, workloadpriorityclasses]
  verbs: [get]
{{- if not .Values.jobs.gangAdmission }}
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get, list]
{{- end }}
{{- end -}}

{{/* The rights in the operator's own namespace. */}}
{{- define "ringmaster.ownRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
{{- end -}}

{{- define "ringmaster.nodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [{{ if .Values.nodes.trustNodeDeletion }}get, {{ end }}list, watch]
{{- if and .Values.watchNamespaces .Values.jobs.gangAdmission }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- end }}
{{- if .Values.jobs.gangAdmission }}
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get, list]
{{- end }}
{{- end -}}

{{/* Whose token it is that wants metrics, and what that one may. */}}
{{- define "ringmaster.reviewRules" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end -}}

{{/* The rights of the hook that clears finalizers after an uninstall. */}}
{{- define "ringmaster.cleanupRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, patch]
{{- end -}}
