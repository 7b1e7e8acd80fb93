import { version } from '../../package.json'
import { traceExport } from '../config'
import { log, logError } from '../core/log'
import { LogQuota } from '../core/log-quota'
import { RANDOM_ID, recordSpans, type Trace, type Tracer } from '../core/trace'

const FLUSH_TIMEOUT_MS = 2_000 // how long a stopping server waits for the collector
const failureLines = new LogQuota(1)

/**
 * Begins to export spans by OpenTelemetry, if the environment names an endpoint. Returns a function that exports what is
 * left and ends it. The library is loaded only then; it reads the endpoint, headers and attributes by itself.
 */
export async function startTraceExport(): Promise<() => Promise<unknown>> {
  if (!traceExport.isOn) return async () => {}
  const [api, sdk, { OTLPTraceExporter }, resources] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
    import('@opentelemetry/resources'),
  ])
  const report = (message: string) => {
    const omitted = failureLines.take()
    if (omitted !== undefined) logError('TRACES_NOT_EXPORTED', { cause: message, ...(omitted && { omitted }) })
  }
  const ignore = () => {}
  api.diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  const own = resources.resourceFromAttributes({ 'service.name': 'atoll', 'service.version': version })
  const { envDetector, serviceInstanceIdDetector } = resources
  const resource = own.merge(resources.detectResources({ detectors: [serviceInstanceIdDetector, envDetector] }))
  const provider = new sdk.TracerProvider({
    resource,
    sampler: createSampler(sdk),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  recordSpans(createTracer(api, provider.getTracer('atoll', version)))
  log.info({ event: 'trace-export' })
  return async () => {
    recordSpans(undefined)
    // A collector that does not answer must not hold up the stop.
    await Promise.race([provider.shutdown().catch(() => {}), Bun.sleep(FLUSH_TIMEOUT_MS)])
  }
}

type Sdk = typeof import('@opentelemetry/sdk-trace')

/** Returns the sampler that OTEL_TRACES_SAMPLER names. A name or share that does not exist counts as not given. */
function createSampler(sdk: Sdk) {
  const { sampler, share } = traceExport
  const byShare = () => new sdk.TraceIdRatioBasedSampler(share)
  const samplers = {
    always_on: () => new sdk.AlwaysOnSampler(),
    always_off: () => new sdk.AlwaysOffSampler(),
    traceidratio: byShare,
    parentbased_always_on: () => new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() }),
    parentbased_always_off: () => new sdk.ParentBasedSampler({ root: new sdk.AlwaysOffSampler() }),
    parentbased_traceidratio: () => new sdk.ParentBasedSampler({ root: byShare() }),
  }
  return samplers[sampler]()
}

type Api = typeof import('@opentelemetry/api')

/** Returns a tracer that starts spans of OpenTelemetry. */
function createTracer(api: Api, tracer: import('@opentelemetry/api').Tracer): Tracer {
  const { SpanKind, SpanStatusCode, TraceFlags, ROOT_CONTEXT, trace: traceApi, createTraceState } = api
  const kinds = {
    server: SpanKind.SERVER,
    client: SpanKind.CLIENT,
    consumer: SpanKind.CONSUMER,
    internal: SpanKind.INTERNAL,
  }
  const toContext = ({ traceId, spanId, flags, state }: Trace) =>
    traceApi.setSpanContext(ROOT_CONTEXT, {
      ...{ traceId, spanId, traceFlags: flags, isRemote: true },
      ...(state && { traceState: createTraceState(state) }),
    })
  return {
    startSpan(name, kind, attributes, parent, startTime) {
      const options = { kind: kinds[kind], attributes, startTime }
      const span = tracer.startSpan(name, options, parent ? toContext(parent) : ROOT_CONTEXT)
      const { traceId, spanId, traceFlags, traceState } = span.spanContext()
      const state = traceState?.serialize()
      return {
        trace: {
          traceId,
          spanId,
          flags: (traceFlags & TraceFlags.SAMPLED) | ((parent?.flags ?? 0) & RANDOM_ID),
          ...(state && { state }),
        },
        describe(more, newName) {
          span.setAttributes(more)
          if (newName) span.updateName(newName)
        },
        end(error, endedMs) {
          if (error) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR })
          span.end(endedMs)
        },
      }
    },
  }
}
