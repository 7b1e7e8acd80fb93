const SAMPLERS = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
]

/**
 * Returns whether OpenTelemetry's variables ask for an export of traces, and which traces are recorded. They belong to
 * many programs, so what is invalid there stops none of them.
 */
export function readTraceExport(environment: Record<string, string | undefined>) {
  const share = Number(environment.OTEL_TRACES_SAMPLER_ARG || '1')
  return {
    isOn:
      !!(environment.OTEL_EXPORTER_OTLP_ENDPOINT || environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) &&
      environment.OTEL_SDK_DISABLED?.toLowerCase() !== 'true' &&
      environment.OTEL_TRACES_EXPORTER !== 'none',
    sampler: SAMPLERS.find((name) => name === environment.OTEL_TRACES_SAMPLER) ?? 'parentbased_always_on',
    share: share >= 0 && share <= 1 ? share : 1,
  }
}
