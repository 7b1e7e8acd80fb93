import { api, fetchData } from '../api/client'
import { toChartFilters } from '../charts/chart-address'
import { startWork, type WorkControl } from '../tray/work'
import { createRowCounter, EXPORT_FORMATS, type ExportFormat, toJsonList } from './export-format'
import { type FileTarget, openFileTarget } from './file-download'

/** What is exported: the entities that match the filters, with some or all of their fields. */
export type Export = {
  blueprint: { key: string; name: string }
  format: ExportFormat
  filters: Record<string, string>
  /** All of them when it is empty. */
  fields: readonly string[]
  /** How many entities match. */
  count: number
}

async function fetchExport({ blueprint, format, filters, fields }: Export, signal: AbortSignal) {
  const { serverFormat } = EXPORT_FORMATS.find(({ value }) => value === format)!
  const query = {
    ...toChartFilters(filters),
    format: serverFormat,
    $flat: true,
    ...(fields.length && { $select: fields.join() }),
  }
  const body = (await fetchData(
    api.GET('/api/blueprints/{key}/entities/export', {
      params: { path: { key: blueprint.key }, query: query as never },
      parseAs: 'stream',
      signal,
    }),
  )) as ReadableStream<Uint8Array<ArrayBuffer>>
  return body
}

async function copyExport(request: Export, target: FileTarget, { signal, report }: WorkControl): Promise<string> {
  const [body, countRows] = [await fetchExport(request, signal), createRowCounter(request.format)]
  let rows = 0
  const counted = body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: (piece, controller) => {
        rows = countRows(piece)
        report(rows, Math.max(rows, request.count))
        controller.enqueue(piece)
      },
    }),
  )
  const reader = (request.format === 'json' ? counted.pipeThrough(toJsonList()) : counted).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    await target.write(value)
  }
  await target.close()
  return `${rows.toLocaleString()} rows were saved.`
}

/** Saves entities in a file; the tray shows the progress. */
export async function startExport(request: Export) {
  const { type } = EXPORT_FORMATS.find(({ value }) => value === request.format)!
  const name = `${request.blueprint.key}.${request.format}`
  const target = await openFileTarget(name, type, request.count)
  return startWork({
    ...{ label: `Export of ${name}`, unit: 'rows', total: request.count },
    run: (control) =>
      copyExport(request, target, control).catch(async (error) => {
        await target.abort()
        if (error instanceof TypeError) throw new Error('The connection broke off. Export again.')
        throw error
      }),
  })
}
