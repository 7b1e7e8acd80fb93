import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import type { Footprint } from './footprint'
import { nameClient } from './load'
import type { RowResult } from './table'
import { toMarkdown } from './table-print'

export type Report = {
  at: string
  machine: string
  client: string
  rows: number
  seconds: number
  rounds: number
  footprints: Record<string, Footprint>
  results: RowResult[]
  [name: string]: unknown
}

export function createReport(run: Pick<Report, 'rows' | 'seconds' | 'rounds'>): Report {
  const [cpu] = cpus()
  const machine = `${cpus().length} × ${cpu?.model.trim()}, ${process.platform} ${process.arch}, Bun ${Bun.version}`
  return { at: new Date().toISOString(), machine, client: nameClient(run.seconds), ...run, footprints: {}, results: [] }
}

/** Writes all figures as JSON, and the table as Markdown beside it. */
export function writeReport(report: Report, sideNames: string[], out: string) {
  mkdirSync(join(out, '..'), { recursive: true })
  writeFileSync(out, `${JSON.stringify(report, null, 2)}\n`)
  writeFileSync(out.replace(/\.json$/, '.md'), `${toMarkdown(report.results, sideNames)}\n`)
}
