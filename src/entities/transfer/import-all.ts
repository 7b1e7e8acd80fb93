import type { Ctx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import { requireRowScope, rowScopeOf } from '../../blueprints/permissions'
import { UTC } from '../../core/time-zone'
import { disableIdleTimeout } from '../../tenancy/client-connection'
import { withoutPrivilege } from '../request'
import { CsvTable } from './csv-table'
import { ImportRun } from './import'
import { ImportReader, parseImportCsvOptions, parseImportOptions, parseImportTimeZone } from './import-reader'
import type { ImportReport } from './progress'

/**
 * Imports entities from a body of lines as it arrives, a batch at a time. Rejected lines are reported and skipped; with
 * `atomic`, one rejected line undoes the whole import. Once a line exceeds a quota, no further line is tried.
 * @throws 400, 403, 404, 409, 413, 415
 */
export async function importAll(originalCtx: Ctx, key: string, request: Request): Promise<ImportReport> {
  const ctx = withoutPrivilege(originalCtx, request) as Ctx
  const model = await getModel(ctx, key)
  const options = parseImportOptions(request)
  if (options.mode === 'create' || !rowScopeOf(model, 'update', ctx.actor)) requireRowScope(model, 'create', ctx.actor)
  disableIdleTimeout(request)
  const zone = parseImportTimeZone(request)
  const csv = options.format === 'csv' ? parseImportCsvOptions(request) : undefined
  const table = csv && new CsvTable(model, ctx.actor, { decimal: csv.decimal, zone: zone ?? UTC }, csv)
  const reader = new ImportReader(request, options.format)
  const run = new ImportRun(ctx, key, options, model, { reader, table, zone })
  return run.run()
}
