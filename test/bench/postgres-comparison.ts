// `npm run bench -- --engine postgres`: the rows of the table on a PostgreSQL server, beside pgbench.
import { join } from 'node:path'
import { queryDatabase, startPostgres } from '../fakes/postgres'
import { createTempFolder } from '../temp-folder'
import type { ComparisonOptions } from './comparison'
import { createRandom } from './random'
import { createReport, writeReport } from './report'
import { createAtollSide, toProgram } from './sides/atoll'
import { createPgbenchContender } from './sides/pgbench'
import { measureRow, toContender } from './table'
import { printRow } from './table-print'
import { drawUsualLists, TABLE_ROWS, USED_LISTS } from './table-rows'

export async function comparePostgres(options: Omit<ComparisonOptions, 'peer' | 'peerDurable'>) {
  const { rows, seconds, rounds, only, program = '.', before } = options
  const server = await startPostgres({ durable: true })
  const folder = createTempFolder('bench')
  const atoll = createSide(server.url, { name: 'Atoll', folder: join(folder, 'atoll'), rows, program })
  const sides = [atoll]
  if (before !== undefined)
    sides.push(createSide(server.url, { name: 'Atoll before', folder: join(folder, 'before'), rows, program: before }))
  console.log(`${rows} contacts, ${rounds} rounds of ${seconds} s`)
  for (const side of sides) {
    console.log(`${side.name}: ${Math.round(await side.fill())} rows/s imported`)
    await side.useLists(drawUsualLists(createRandom('used'), rows, USED_LISTS))
  }
  const { json } = await atoll.readAll()
  const limit = createDatabases(server.url, 'limit')
  await limit.create('filled')
  const copyLimit = async () => {
    await limit.copy('filled', 'copy')
    return limit.urlOf('copy')
  }
  const contenders = [...sides.map(toContender), await createPgbenchContender(limit.urlOf('filled'), json, copyLimit)]
  const names = contenders.map(({ name }) => name)
  const report = createReport({ rows, seconds, rounds })
  const out = options.out.replace(/\.json$/, '-postgres.json')
  for (const row of TABLE_ROWS.filter(({ name, inFlight }) => inFlight && (!only || only.test(name)))) {
    const result = await measureRow(row, { contenders, rows, seconds, rounds })
    printRow(result, names)
    report.results.push(result)
    writeReport(report, names, out)
  }
  console.log(`\nwritten to ${out}`)
  await server.stop()
}

type SideOptions = { name: string; folder: string; rows: number; program: string }

const createSide = (serverUrl: string, { program, ...options }: SideOptions) =>
  createAtollSide({
    ...options,
    program: toProgram(program),
    database: createDatabases(serverUrl, options.name.replaceAll(/\W/g, '_').toLowerCase()),
  })

/** Databases with a prefix of their own, each of which may be a copy of another. */
function createDatabases(serverUrl: string, prefix: string) {
  const run = async (sql: string) => void (await queryDatabase(serverUrl, sql))
  return {
    create: (name: string) => run(`create database ${prefix}_${name}`),
    async copy(from: string, to: string) {
      await run(`drop database if exists ${prefix}_${to} with (force)`)
      await run(`create database ${prefix}_${to} template ${prefix}_${from} strategy file_copy`)
    },
    urlOf: (name: string) => `${Object.assign(new URL(serverUrl), { pathname: `/${prefix}_${name}` })}`,
  }
}
