// The table of `npm run bench`: Atoll, PocketBase and the limit take turns on the same contacts.
import { join } from 'node:path'
import { createTempFolder } from '../temp-folder'
import { FITTING_INDEXES, SINGLE_INDEXES } from './contacts'
import { measureFootprint, printFootprint } from './footprint'
import { measureSequence, medianOf, nameClient } from './load'
import { warmQueries } from './queries'
import { createRandom } from './random'
import { createReport, type Report, writeReport } from './report'
import { measureSearchBesideCreates } from './search-beside-creates'
import { type AtollSide, createAtollSide, toAtollRequest, toProgram } from './sides/atoll'
import { createLimitSide } from './sides/limit'
import { createPocketBaseSide } from './sides/pocketbase'
import type { Side } from './sides/side'
import { measureRow, toContender } from './table'
import { printRow } from './table-print'
import { drawUsualLists, TABLE_ROWS, USED_LISTS } from './table-rows'

export type ComparisonOptions = {
  rows: number
  seconds: number
  rounds: number
  only?: RegExp
  /** PocketBase's program, and the setting by which it flushes each commit. */
  peer?: string
  peerDurable?: string
  /** The checkout or binary that is measured, and another one beside it. */
  program?: string
  before?: string
  out: string
}

const CHECKED_QUESTIONS = 3
const WARM_REQUESTS = 100

export async function compareServers(options: ComparisonOptions) {
  const { rows, seconds, rounds, only } = options
  const isIncluded = (name: string) => !only || only.test(name)
  const sides = createSides(options)
  const names = sides.map(({ name }) => name)
  console.log(`${rows} contacts, ${rounds} rounds of ${seconds} s, by ${nameClient(seconds)}`)
  if (options.peer) console.log(`PocketBase has indexes of (${[...SINGLE_INDEXES, ...FITTING_INDEXES].join('), (')})`)
  const report = createReport({ rows, seconds, rounds })
  for (const side of sides) {
    const importedPerSecond = await side.fill()
    report.footprints[side.name] = await measureFootprint(side, importedPerSecond, isIncluded('footprint') ? rounds : 1)
    printFootprint(side.name, report.footprints[side.name]!)
  }
  for (const side of sides.filter((side): side is AtollSide => 'useLists' in side)) {
    await side.useLists(drawUsualLists(createRandom('used'), rows, USED_LISTS))
    console.log(`${side.name.padEnd(14)} ${side.measureSize().toFixed(1)} MB on the disk once these lists were asked`)
  }
  await assertEqualAnswers(sides, rows)
  for (const row of TABLE_ROWS.filter(({ name }) => isIncluded(name))) {
    const result = await measureRow(row, { contenders: sides.map(toContender), rows, seconds, rounds })
    printRow(result, names)
    if (row.isDurable && sides.some(({ isNeverDurable }) => isNeverDurable))
      console.log('  (PocketBase does not wait for the disk here: see --peer-durable)')
    report.results.push(result)
    writeReport(report, names, options.out)
  }
  const [atoll] = sides as [AtollSide]
  if (isIncluded('first search beside creates')) await compareCreatesBesideSearch(atoll, options, report)
  if (isIncluded('warm queries')) await measureWarmQueries(atoll, rows, report)
  writeReport(report, names, options.out)
  console.log(`\nwritten to ${options.out}`)
}

function createSides({ rows, peer, peerDurable, program = '.', before }: ComparisonOptions): Side[] {
  const folder = createTempFolder('bench')
  const atoll = createAtollSide({ name: 'Atoll', folder: join(folder, 'atoll'), rows, program: toProgram(program) })
  const [name = '', value = ''] = peerDurable?.split('=') ?? []
  return [
    atoll,
    ...(before
      ? [createAtollSide({ name: 'Atoll before', folder: join(folder, 'before'), rows, program: toProgram(before) })]
      : []),
    ...(peer
      ? [
          createPocketBaseSide({
            ...{ program: peer, folder: join(folder, 'pocketbase'), rows },
            durableEnv: peerDurable === undefined ? undefined : { [name]: value },
          }),
        ]
      : []),
    createLimitSide(join(folder, 'limit'), atoll.readAll),
  ]
}

/** Sends some requests of each row to each server: all servers have to find the same number of contacts. */
async function assertEqualAnswers(sides: Side[], rows: number) {
  for (const caller of ['user', 'member'] as const) {
    const lists = TABLE_ROWS.filter((row) => row.inFlight && !row.writes && (row.caller ?? 'user') === caller).flatMap(
      ({ draw }) => draw(createRandom('equal'), rows).slice(0, CHECKED_QUESTIONS),
    )
    const counts: string[] = []
    for (const side of sides) {
      const requests = lists.map((question) => (question.kind === 'list' ? side.toRequest(question)! : undefined))
      await using server = await side.start({ caller: caller === 'member' ? caller : undefined })
      const found: string[] = []
      for (const request of requests.filter((request) => request !== undefined)) {
        const response = await fetch(server.url + request.path, { headers: server.headers })
        const body = (await response.json()) as { items?: object[]; totalItems?: number } & object[]
        const total = response.headers.get('x-total-count') ?? `${body.totalItems ?? -1}`
        found.push(`${(body.items ?? body).length} of ${total === '-1' ? 'some' : total}`)
      }
      counts.push(found.join(', '))
    }
    const different = counts.findIndex((count) => count !== counts[0])
    if (different > 0)
      throw new Error(`${sides[0]!.name} found ${counts[0]}\n${sides[different]!.name} found ${counts[different]}`)
  }
}

async function compareCreatesBesideSearch(
  atoll: AtollSide,
  { rows, seconds, rounds }: ComparisonOptions,
  report: Report,
) {
  const list = []
  for (let round = 0; round < rounds; round++) list.push(await measureSearchBesideCreates(atoll, rows, seconds, round))
  const ratios = list.map(({ ratio }) => ratio)
  const secondsOf = (times: number[]) => (medianOf(times) / 1_000).toFixed(1)
  report['first search beside creates'] = list
  console.log(
    `\nfirst search beside creates: they keep ${medianOf(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}) of their rate; it is answered after ${secondsOf(list.map(({ searchMs }) => searchMs))} s, and its words are indexed after ${secondsOf(list.map(({ indexedMs }) => indexedMs))} s`,
  )
}

/** The time of lists on a server that has run such lists before, one by one. */
async function measureWarmQueries(atoll: Side, rows: number, report: Report) {
  const warm: Record<string, unknown> = {}
  await using server = await atoll.start({})
  console.log()
  for (const [name, { queries, maxMs }] of Object.entries(warmQueries(rows))) {
    const requests = Array.from({ length: WARM_REQUESTS }, (_, n) => toAtollRequest(queries[n % queries.length]!))
    await measureSequence(server.url, server.headers, requests)
    const figures = await measureSequence(server.url, server.headers, requests)
    const bound = maxMs ? `  (at most ${maxMs} ms: ${figures.p50 <= maxMs ? 'yes' : 'NO'})` : ''
    const [p50, p99, max] = [figures.p50, figures.p99, figures.max].map((ms) => ms.toFixed(2).padStart(7))
    console.log(`${name.padEnd(40)} p50 ${p50} ms  p99 ${p99} ms  max ${max} ms${bound}`)
    warm[name] = figures
  }
  report['warm queries'] = warm
}
